import { COST, type Share } from './turns.ts';

/** What answers that wait for a window, and calls that work on theirs, may keep before no more calls are started. */
const MAX_BYTES = 4_194_304;

export interface QueuedCall {
  /** Resolves when the next call may start. */
  start(): Promise<void>;
}

export interface CallQueueDependencies {
  /** What answers that wait, and calls at work, keep now. */
  readonly readBytes: () => number;
  readonly share: Share;
}

/** Calls of one connection that cannot start in the turn in which they came. They start one after the other. */
export class CallQueue {
  readonly #dependencies: CallQueueDependencies;
  readonly #waiting = new Set<QueuedCall>();
  #isBusy = false;

  constructor(dependencies: CallQueueDependencies) {
    this.#dependencies = dependencies;
  }

  get hasRoom(): boolean {
    return this.#dependencies.readBytes() < MAX_BYTES;
  }

  add(call: QueuedCall): void {
    this.#waiting.add(call);
    this.resume();
  }

  /** The call is over: kept here, it would keep its request until those before it have started, if ever. */
  remove(call: QueuedCall): void {
    this.#waiting.delete(call);
  }

  /** There may be room again. */
  resume(): void {
    if (this.#isBusy || this.#waiting.size === 0 || !this.hasRoom) return;
    this.#isBusy = true;
    void this.#startNext().finally(() => {
      this.#isBusy = false;
      this.resume();
    });
  }

  /** The promise of a call never rejects: it fails by itself. */
  async #startNext(): Promise<void> {
    const [call] = this.#waiting;
    if (call === undefined) return;
    await this.#dependencies.share.take(COST.call);
    // It may be over by now.
    if (this.#waiting.delete(call)) await call.start();
  }
}
