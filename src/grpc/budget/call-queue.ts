/** Delays calls of a connection that cannot start at once because running calls and waiting answers keep too much memory. */
import { type Linked, LinkedQueue } from '../../memory/linked-queue.ts';
import { COST, type Share } from './turns.ts';

/** New calls wait while running calls, and answers that wait for a flow-control window, keep more bytes than this. */
const MAX_BYTES = 4_194_304;

export interface QueuedCall extends Linked<QueuedCall> {
  /** Resolves when the next call may start. */
  start(): Promise<void>;
}

export interface CallQueueDependencies {
  /** The bytes that waiting answers and running calls keep now. */
  readonly readBytes: () => number;
  readonly share: Share;
}

/** Calls of one connection that cannot start in the event loop turn in which they arrived. They start one after the other. */
export class CallQueue {
  readonly #dependencies: CallQueueDependencies;
  readonly #waiting = new LinkedQueue<QueuedCall>();
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

  /** Removes a call that has ended while it waited, so that its request is freed at once. */
  remove(call: QueuedCall): void {
    this.#waiting.delete(call);
  }

  /** Must be called when there may be room again. */
  resume(): void {
    if (this.#isBusy || this.#waiting.first === undefined || !this.hasRoom) return;
    this.#isBusy = true;
    void this.#startNext().finally(() => {
      this.#isBusy = false;
      this.resume();
    });
  }

  /** The promise of a call never rejects: a call reports its own failure. */
  async #startNext(): Promise<void> {
    const call = this.#waiting.first;
    if (call === undefined) return;
    await this.#dependencies.share.take(COST.call);
    // The call may have ended by now.
    if (this.#waiting.delete(call)) await call.start();
  }
}
