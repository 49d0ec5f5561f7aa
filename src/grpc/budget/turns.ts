/**
 * Fair shares of the event loop. A socket hands over megabytes in one turn of the loop, and a connection that is never
 * short of calls would let all others wait for as long as they take. So a connection works until its share is spent,
 * and goes on after all others had theirs.
 */

/** Costs are measured in units of about a microsecond of work. */
const MAX_SHARE = 600;
/** With many connections that wait, each has a smaller share, so that all of them together do not take longer. */
const TURN = 2400;
const MIN_SHARE = 60;
/** Of a connection that has done nothing yet. */
const FIRST_SHARE = 150;
/** A connection pays for work that was larger than its share, up to this. */
const MAX_DEBT = 20 * MAX_SHARE;
/** 256 bytes a unit: 64 inputs, which have 5 KB, take 20 µs to predict. */
const BYTES_PER_UNIT_LOG2 = 8;

export const COST = { frame: 1, call: 5, stream: 60, message: 15 } as const;

export function costOfBytes(bytes: number): number {
  return bytes >>> BYTES_PER_UNIT_LOG2;
}

/** The connections that wait for their next share, in the order in which they asked. */
export class Turns {
  #waiting: ((share: number) => void)[] = [];

  wait(begin: (share: number) => void): void {
    if (this.#waiting.length === 0) setImmediate(this.#run);
    this.#waiting.push(begin);
  }

  readonly #run = (): void => {
    const waiting = this.#waiting;
    this.#waiting = [];
    const share = Math.max(MIN_SHARE, Math.min(MAX_SHARE, Math.floor(TURN / waiting.length)));
    for (const begin of waiting) begin(share);
  };
}

interface Waiter {
  readonly cost: number;
  readonly resolve: () => void;
}

/** What is left to one connection until it must wait. */
export class Share {
  readonly #turns: Turns;
  readonly #onBegin: () => void;
  #left = FIRST_SHARE;
  #isAsking = false;
  readonly #waiters: Waiter[] = [];

  /** `onBegin` is called when a new share is there. */
  constructor(turns: Turns, onBegin: () => void) {
    this.#turns = turns;
    this.#onBegin = onBegin;
  }

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  spend(cost: number): void {
    this.#left -= cost;
  }

  /** Waits for a new share if this one is spent. */
  ask(): void {
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.#turns.wait(this.#begin);
  }

  /** Spends, in a later turn if the share is spent already. Undefined when it need not wait. */
  take(cost: number): Promise<void> | undefined {
    if (!this.isSpent && this.#waiters.length === 0) {
      this.#left -= cost;
      return undefined;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.push({ cost, resolve });
    this.ask();
    return promise;
  }

  readonly #begin = (share: number): void => {
    this.#isAsking = false;
    this.#left = Math.min(share, Math.max(this.#left, -MAX_DEBT) + share);
    while (!this.isSpent && this.#waiters.length > 0) {
      const { cost, resolve } = this.#waiters.shift()!;
      this.#left -= cost;
      resolve();
    }
    if (this.isSpent || this.#waiters.length > 0) this.ask();
    else this.#onBegin();
  };
}
