/** Counts once the memory that several messages of one read share. */
import type { MemoryAccount } from './memory-budget.ts';

interface Held {
  readonly memory: ArrayBufferLike;
  /** The length when the memory was counted: memory that was freed since then has length 0. */
  readonly bytes: number;
  users: number;
}

/**
 * Memory that several messages keep together: the messages of one read are views of it, and each of them keeps the whole read alive.
 * It is counted once. The messages of one read follow each other, so only the memory that was held last is compared.
 */
export class SharedMemory {
  readonly #account: MemoryAccount;
  #last: Held | undefined;

  constructor(account: MemoryAccount) {
    this.#account = account;
  }

  get bytes(): number {
    return this.#account.bytes;
  }

  /** Returns a function that the user must call once, when it needs the memory no more. */
  hold(memory: ArrayBufferLike): () => void {
    const held = this.#last?.memory === memory ? this.#last : this.#add(memory);
    held.users += 1;
    return () => this.#release(held);
  }

  #add(memory: ArrayBufferLike): Held {
    const held = { memory, bytes: memory.byteLength, users: 0 };
    this.#last = held;
    this.#account.take(held.bytes);
    return held;
  }

  #release(held: Held): void {
    held.users -= 1;
    if (held.users > 0) return;
    this.#account.give(held.bytes);
    if (this.#last === held) this.#last = undefined;
  }
}
