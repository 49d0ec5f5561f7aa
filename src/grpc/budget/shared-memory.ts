import type { MemoryAccount } from './memory-budget.ts';

interface Held {
  readonly memory: ArrayBufferLike;
  users: number;
}

/**
 * Memory that several users keep together: the messages that came with one read are views of it, and each of them keeps all of it.
 * It is counted once. Those of one read follow each other, so only the memory that was held last is compared.
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

  /** Returns what its user must call once, when it does not need the memory any more. */
  hold(memory: ArrayBufferLike): () => void {
    const held = this.#last?.memory === memory ? this.#last : this.#add(memory);
    held.users += 1;
    return () => this.#release(held);
  }

  #add(memory: ArrayBufferLike): Held {
    this.#last = { memory, users: 0 };
    this.#account.take(memory.byteLength);
    return this.#last;
  }

  #release(held: Held): void {
    held.users -= 1;
    if (held.users > 0) return;
    this.#account.give(held.memory.byteLength);
    if (this.#last === held) this.#last = undefined;
  }
}
