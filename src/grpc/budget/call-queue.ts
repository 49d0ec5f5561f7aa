import type { MemoryAccount } from './memory-budget.ts';
import { COST, costOfBytes, type Share } from './turns.ts';

/** What answers that wait for a window, and calls that work on theirs, may keep before no more calls are started. */
const MAX_BYTES = 4_194_304;

export interface QueuedCall {
  readonly isEnded: boolean;
  /** Of its request. */
  readonly bytes: number;
  /** Resolves when the next call may start. */
  start(): Promise<void>;
}

/** Calls of one connection that cannot start in the turn in which they came. They start one after the other. */
export class CallQueue {
  readonly #account: MemoryAccount;
  readonly #share: Share;
  readonly #waiting: QueuedCall[] = [];
  #isBusy = false;

  constructor(account: MemoryAccount, share: Share) {
    this.#account = account;
    this.#share = share;
  }

  get hasRoom(): boolean {
    return this.#account.bytes < MAX_BYTES;
  }

  add(call: QueuedCall): void {
    this.#waiting.push(call);
    this.resume();
  }

  /** Something may have been given back to the account. */
  resume(): void {
    if (this.#isBusy || this.#waiting.length === 0 || !this.hasRoom) return;
    this.#isBusy = true;
    void this.#startNext().finally(() => {
      this.#isBusy = false;
      this.resume();
    });
  }

  /** The promise of a call never rejects: it fails by itself. */
  async #startNext(): Promise<void> {
    const call = this.#waiting.shift();
    if (call === undefined || call.isEnded) return;
    await this.#share.take(COST.call + costOfBytes(call.bytes));
    if (!call.isEnded) await call.start();
  }
}
