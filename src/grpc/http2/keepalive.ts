const EVERY_MS = 60_000;

/** Asks a silent client whether it is still there, and gives it up when it does not say so by the next look. */
export class Keepalive {
  readonly #timer: NodeJS.Timeout;
  #isIdle = false;
  #isAsked = false;

  constructor(ask: () => void, giveUp: () => void) {
    this.#timer = setInterval(() => {
      if (this.#isAsked) {
        giveUp();
        return;
      }
      this.#isAsked = this.#isIdle;
      if (this.#isIdle) ask();
      this.#isIdle = true;
    }, EVERY_MS).unref();
  }

  /** Something came. */
  hear(): void {
    this.#isIdle = false;
  }

  /** The answer came. */
  hearAnswer(): void {
    this.#isAsked = false;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
