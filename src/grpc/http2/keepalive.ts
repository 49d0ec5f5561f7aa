/** Closes a connection that does not answer a keepalive ping. */

const EVERY_MS = 60_000;

/**
 * Pings a client that has begun no call since the last check, and closes its connection if it has not answered by the next.
 * Bytes alone are no sign of life: a client that drips them would hold its connection for ever.
 */
export class Keepalive {
  readonly #timer: NodeJS.Timeout;
  #hasCalled = false;
  #isAsked = false;

  constructor(ask: () => void, giveUp: () => void) {
    this.#timer = setInterval(() => {
      if (this.#isAsked) {
        giveUp();
        return;
      }
      this.#isAsked = !this.#hasCalled;
      if (this.#isAsked) ask();
      this.#hasCalled = false;
    }, EVERY_MS).unref();
  }

  /** Must be called for each new call. */
  hearCall(): void {
    this.#hasCalled = true;
  }

  /** Must be called when the ping is answered. */
  hearAnswer(): void {
    this.#isAsked = false;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
