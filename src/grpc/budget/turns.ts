/**
 * Divides the event loop fairly among connections: each works until its share of the turn is spent. A socket may deliver
 * megabytes in one turn of the loop, and a connection that always has calls would make all others wait. So a connection that
 * has spent its share continues after all others had theirs.
 */

/** Costs are measured in units of about a microsecond of work. */
const MAX_SHARE = 600;
/** When many connections wait, each has a smaller share, so that all of them together do not take longer. */
const TURN = 2400;
/**
 * After this much work of all connections in a turn, busy connections wait for the next turn, and are first in it: a call cannot
 * be interrupted, and large calls of several connections add up.
 */
const MAX_RUN = 1200;
/** The same limit in time: code that runs for the first time, or a busy machine, can make a unit several times as long. */
const MAX_RUN_MS = 2;
/** A connection that does less work in a turn, on average, does not wait for others. */
const LITTLE_WORK = 60;
const MIN_SHARE = 60;
/** The share of a connection that has done nothing yet. */
const FIRST_SHARE = 150;
/** The same share in a turn that is full: enough for a first call, since many connections may begin at once. */
const FIRST_SHARE_WHEN_FULL = 30;
/** A connection whose work exceeded its share gets smaller shares later; at most this much is carried over. */
const MAX_DEBT = 20 * MAX_SHARE;
/** 256 bytes a unit: 64 inputs, which have 5 KB, take 20 µs to predict. */
const BYTES_PER_UNIT_LOG2 = 8;
/** 32 bytes a unit: Huffman code and changes of the table take 20 to 25 ns a byte. */
const HEADER_BYTES_PER_UNIT_LOG2 = 5;

export const COST = { read: 5, frame: 1, call: 5, stream: 60, message: 15, answer: 20, failure: 15, drop: 10 } as const;

export function costOfBytes(bytes: number): number {
  return bytes >>> BYTES_PER_UNIT_LOG2;
}

/** The work of decoding a header block, in units. */
export function costOfHeaders(bytes: number): number {
  return bytes >>> HEADER_BYTES_PER_UNIT_LOG2;
}

/** The connections that wait for their next share, in the order in which they began to wait. */
export class Turns {
  readonly #monotonicMs: () => number;
  #waiting: ((share: number) => void)[] = [];
  /** Units of work of all connections: in total, and in total before this turn. */
  #spent = 0;
  #spentBefore = 0;
  #turn = 0;
  #beganMs = 0;
  #isCounting = false;
  /** Connections that began a share with a read, in this turn and in the one before. */
  #renewed = 0;
  #renewedBefore = 0;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** The number of the current event loop turn. It ends when all sockets that were ready are read. */
  get current(): number {
    if (!this.#isCounting) {
      this.#isCounting = true;
      this.#beganMs = this.#monotonicMs();
      setImmediate(this.#endTurn);
    }
    return this.#turn;
  }

  /** The share of one connection in this turn, if as many are busy as in the turn before. */
  takeShare(): number {
    this.#renewed += 1;
    return sizeOfShare(Math.max(this.#renewed, this.#renewedBefore));
  }

  readonly #endTurn = (): void => {
    this.#isCounting = false;
    this.#turn += 1;
    this.#spentBefore = this.#spent;
    this.#renewedBefore = this.#renewed;
    this.#renewed = 0;
  };

  spend(cost: number): void {
    this.#spent += cost;
  }

  /** True when the work of this turn has reached the limit: connections that worked much before should wait. */
  get isFull(): boolean {
    return this.#spent - this.#spentBefore >= MAX_RUN || this.#monotonicMs() - this.#beganMs >= MAX_RUN_MS;
  }

  wait(begin: (share: number) => void): void {
    if (this.#waiting.length === 0) setImmediate(this.#run);
    this.#waiting.push(begin);
  }

  readonly #run = (): void => {
    const waiting = this.#waiting;
    this.#waiting = [];
    const share = sizeOfShare(waiting.length);
    const last = this.#spent + MAX_RUN;
    const lastMs = this.#monotonicMs() + MAX_RUN_MS;
    let next = 0;
    do waiting[next++]!(share);
    while (next < waiting.length && this.#spent < last && this.#monotonicMs() < lastMs);
    if (next < waiting.length) this.#postpone(waiting.slice(next));
  };

  #postpone(waiting: ((share: number) => void)[]): void {
    if (this.#waiting.length === 0) setImmediate(this.#run);
    this.#waiting.unshift(...waiting);
  }
}

function sizeOfShare(connections: number): number {
  return Math.max(MIN_SHARE, Math.min(MAX_SHARE, Math.floor(TURN / connections)));
}

interface Waiter {
  readonly cost: number;
  readonly resolve: () => void;
}

/** How much work one connection may still do before it must wait. */
export class Share {
  readonly #turns: Turns;
  readonly #onBegin: () => void;
  #left = FIRST_SHARE;
  #isAsking = false;
  /** The turn in which the share began; undefined before the first. */
  #turn: number | undefined;
  #spentInTurn = 0;
  /** Average work in earlier turns; recent turns weigh most. */
  #spentBefore = 0;
  readonly #waiters: Waiter[] = [];

  /** `onBegin` is called when a new share begins. */
  constructor(turns: Turns, onBegin: () => void) {
    this.#turns = turns;
    this.#onBegin = onBegin;
  }

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  spend(cost: number): void {
    this.#left -= cost;
    this.#spentInTurn += cost;
    this.#turns.spend(cost);
  }

  /**
   * Must be called for each read. At the first read of a turn, all other connections had their shares since the last one, so a
   * new share begins without a wait.
   */
  renew(): void {
    const turn = this.#turns.current;
    if (turn === this.#turn) return;
    const isFirst = this.#turn === undefined;
    this.#begins(turn);
    if (isFirst) this.#beginFirst();
    else if (this.#isAsking) return;
    else if (this.#spentBefore > LITTLE_WORK && this.#turns.isFull) this.#postpone();
    else this.#fill(this.#turns.takeShare());
  }

  #beginFirst(): void {
    if (this.#turns.isFull) this.#left = Math.min(this.#left, FIRST_SHARE_WHEN_FULL);
  }

  #begins(turn: number): void {
    this.#turn = turn;
    this.#spentBefore = (this.#spentBefore + this.#spentInTurn) / 2;
    this.#spentInTurn = 0;
  }

  #postpone(): void {
    this.#left = Math.min(this.#left, 0);
    this.ask();
  }

  #fill(share: number): void {
    this.#left = Math.min(share, Math.max(this.#left, -MAX_DEBT) + share);
  }

  /** Waits for a new share if this one is spent. */
  ask(): void {
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.#turns.wait(this.#begin);
  }

  /** Spends these units, in a later turn if the share is used up. Undefined when it need not wait. */
  take(cost: number): Promise<void> | undefined {
    if (!this.isSpent && this.#waiters.length === 0) {
      this.spend(cost);
      return undefined;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.push({ cost, resolve });
    this.ask();
    return promise;
  }

  readonly #begin = (share: number): void => {
    this.#isAsking = false;
    this.#begins(this.#turns.current);
    this.#fill(share);
    while (!this.isSpent && this.#waiters.length > 0) {
      const { cost, resolve } = this.#waiters.shift()!;
      this.spend(cost);
      resolve();
    }
    if (this.isSpent || this.#waiters.length > 0) this.ask();
    else this.#onBegin();
  };
}
