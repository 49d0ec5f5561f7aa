/**
 * Limits the bytes that all gRPC connections keep, and beyond the limit ends calls (RESOURCE_EXHAUSTED) of the greediest network.
 * The greediest network has the largest bytes × time. Its calls end until there is room again, so that callers with few bytes, or
 * with many bytes for a moment, are not affected. Size alone would be wrong: many connections that keep a little for ever would
 * push out a connection that holds a large request for some milliseconds.
 */

import type { NetworkUse } from '../../connections/network-use.ts';
import { BlockPool } from '../../memory/block-pool.ts';
import { type Linked, LinkedQueue } from '../../memory/linked-queue.ts';

/** The age of bytes is capped at this: a stream that lasts for days is no attack. */
const MAX_AGE_MS = 60_000;
/** The least age of bytes, so that bytes which have just arrived have a weight too. */
const FIRST_MS = 1000;
/** Some more calls are ended than necessary, so that there is room for many frames: the search is expensive. */
const SLACK = 1 / 16;
/** At most this many calls are ended beyond what is necessary: thousands of small calls would hold up all others. */
const MAX_SHED_FOR_SLACK = 32;

export interface AccountOwner {
  readonly network: NetworkUse;
  /** Ends the call that keeps the most bytes, and returns false when that frees nothing. */
  readonly shed: () => boolean;
}

interface NetworkScore {
  score: number;
  readonly accounts: { readonly account: MemoryAccount; readonly score: number }[];
}

export class MemoryBudget {
  readonly maxBytes: number;
  /** Blocks that all connections share. */
  readonly blocks = new BlockPool();
  readonly #monotonicMs: () => number;
  #bytes = 0;
  /** The entries that have bytes and an owner. */
  readonly #accounts = new LinkedQueue<MemoryAccount>();
  #isShedding = false;

  constructor(maxBytes: number, monotonicMs: () => number) {
    this.maxBytes = maxBytes;
    this.#monotonicMs = monotonicMs;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Without an owner, the bytes count, but ending calls would not give them back. */
  createAccount(owner?: AccountOwner): MemoryAccount {
    return new MemoryAccount({ owner, monotonicMs: this.#monotonicMs, onChange: this.#change });
  }

  readonly #change = (account: MemoryAccount, change: number): void => {
    this.#bytes += change;
    if (account.owner !== undefined) {
      if (account.bytes > 0) this.#accounts.add(account);
      else this.#accounts.delete(account);
    }
    if (change > 0 && this.#bytes > this.maxBytes) this.#shed();
  };

  #shed(): void {
    if (this.#isShedding) return;
    this.#isShedding = true;
    let ended = 0;
    const isOver = (): boolean =>
      this.#bytes > (ended < MAX_SHED_FOR_SLACK ? this.maxBytes * (1 - SLACK) : this.maxBytes);
    try {
      for (const account of this.#rank()) while (isOver() && account.owner?.shed()) ended += 1;
    } finally {
      this.#isShedding = false;
    }
  }

  /** Sorted by bytes × time: the worst network first, and in it the worst connection. */
  #rank(): MemoryAccount[] {
    const networks = new Map<NetworkUse, NetworkScore>();
    const nowMs = this.#monotonicMs();
    for (const account of this.#accounts) {
      const network = account.owner!.network;
      const entry = networks.get(network) ?? { score: 0, accounts: [] };
      const score = account.bytes * (FIRST_MS + account.ageMs(nowMs));
      entry.score += score;
      entry.accounts.push({ account, score });
      networks.set(network, entry);
    }
    return [...networks.values()]
      .sort((a, b) => b.score - a.score)
      .flatMap(({ accounts }) => accounts.sort((a, b) => b.score - a.score).map(({ account }) => account));
  }
}

/** The bytes of one kind that one connection keeps. */
export class MemoryAccount implements Linked<MemoryAccount> {
  previous: MemoryAccount | undefined;
  next: MemoryAccount | undefined;
  readonly owner: AccountOwner | undefined;
  readonly #monotonicMs: () => number;
  readonly #onChange: (account: MemoryAccount, change: number) => void;
  #bytes = 0;
  /** When the bytes arrived, on average. */
  #meanMs = 0;

  constructor(dependencies: {
    readonly owner: AccountOwner | undefined;
    readonly monotonicMs: () => number;
    readonly onChange: (account: MemoryAccount, change: number) => void;
  }) {
    this.owner = dependencies.owner;
    this.#monotonicMs = dependencies.monotonicMs;
    this.#onChange = dependencies.onChange;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** How long the bytes have been kept, on average. */
  ageMs(nowMs: number): number {
    return Math.min(MAX_AGE_MS, nowMs - this.#meanMs);
  }

  take(bytes: number): void {
    if (bytes === 0) return;
    const before = this.#bytes;
    this.#bytes += bytes;
    if (this.owner !== undefined) this.#meanMs = (before * this.#meanMs + bytes * this.#monotonicMs()) / this.#bytes;
    this.#onChange(this, bytes);
  }

  give(bytes: number): void {
    if (bytes === 0) return;
    this.#bytes -= bytes;
    this.#onChange(this, -bytes);
  }
}
