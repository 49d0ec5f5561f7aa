/**
 * Reserves memory for large messages: only a message with a reservation gets a larger window, and the others
 * wait. The next reservation goes to the network with the least reserved memory, and in it to the connection with the least, so
 * that a client with many messages does not overtake a client with one.
 */

import type { NetworkUse } from '../../connections/network-use.ts';
import { type Linked, LinkedQueue } from '../../memory/linked-queue.ts';

export interface ReservationOwner {
  readonly network: NetworkUse;
  /** The bytes that all messages of this connection have reserved. */
  reservedBytes: number;
  /** The messages of this connection that wait, which `LargeMessages` stores here. */
  reservationQueue: OwnerQueue | undefined;
}

interface OwnerQueue extends Linked<OwnerQueue> {
  readonly owner: ReservationOwner;
  readonly entries: LinkedQueue<Entry>;
}

export interface ReservationRequest {
  readonly owner: ReservationOwner;
  readonly bytes: number;
  readonly onGranted: () => void;
  /** Called when the message did not arrive in time. */
  readonly onExpired: () => void;
}

export interface MemoryReservation {
  readonly isGranted: boolean;
  /** Frees the memory for others. May be called twice. */
  release(): void;
}

export interface ReservationLimits {
  readonly maxBytes: number;
  readonly maxBytesPerConnection: number;
}

/** How long a whole message may take while no other message waits. */
const EXPIRES_MS = 60_000;
/** While others wait, a reservation ends after this time. */
const EXPIRES_BESIDE_OTHERS_MS = 5000;

/** A requested reservation. Its timer runs while it is granted. */
interface Entry extends ReservationRequest, Linked<Entry> {
  timer: NodeJS.Timeout | undefined;
}

export class LargeMessages {
  readonly #limits: ReservationLimits;
  #reservedBytes = 0;
  /** Waiting messages by connection, so that a thousand messages of one connection are skipped in one step. */
  readonly #waiting = new LinkedQueue<OwnerQueue>();
  readonly #granted = new LinkedQueue<Entry>();
  #contention: NodeJS.Timeout | undefined;

  constructor(limits: ReservationLimits) {
    this.#limits = limits;
  }

  /** `onGranted` is called at once if the memory is free. */
  reserve(request: ReservationRequest): MemoryReservation {
    const entry: Entry = { ...request, timer: undefined, previous: undefined, next: undefined };
    this.#addWaiting(entry);
    this.#grantWaiting();
    return {
      get isGranted() {
        return entry.timer !== undefined;
      },
      release: () => this.#release(entry),
    };
  }

  #grantWaiting(): void {
    for (let next = this.#findNext(); next !== undefined; next = this.#findNext()) this.#grant(next);
    if (this.#isContended) this.#watchContention();
  }

  #addWaiting(entry: Entry): void {
    const { owner } = entry;
    owner.reservationQueue ??= { owner, entries: new LinkedQueue(), previous: undefined, next: undefined };
    owner.reservationQueue.entries.add(entry);
    this.#waiting.add(owner.reservationQueue);
  }

  #deleteWaiting(entry: Entry): void {
    const queue = entry.owner.reservationQueue;
    if (queue?.entries.delete(entry) && queue.entries.first === undefined) this.#waiting.delete(queue);
  }

  /** The first message of each connection, unless it waits for others of its own connection. */
  *#listHeads(): Iterable<Entry> {
    for (const { owner, entries } of this.#waiting) {
      const entry = entries.first;
      if (entry !== undefined && owner.reservedBytes + entry.bytes <= this.#limits.maxBytesPerConnection) yield entry;
    }
  }

  /** Whether a message waits for other connections, not for messages of its own. */
  get #isContended(): boolean {
    for (const _ of this.#listHeads()) return true;
    return false;
  }

  /** Undefined while the next message does not fit: smaller messages do not overtake it. */
  #findNext(): Entry | undefined {
    let next: Entry | undefined;
    for (const entry of this.#listHeads()) if (hasLessReserved(entry, next)) next = entry;
    return next === undefined || this.#reservedBytes + next.bytes > this.#limits.maxBytes ? undefined : next;
  }

  #grant(entry: Entry): void {
    this.#deleteWaiting(entry);
    this.#granted.add(entry);
    this.#change(entry, entry.bytes);
    entry.timer = setTimeout(entry.onExpired, EXPIRES_MS).unref();
    entry.onGranted();
  }

  #release(entry: Entry): void {
    if (entry.timer === undefined) {
      this.#deleteWaiting(entry);
      return;
    }
    this.#granted.delete(entry);
    clearTimeout(entry.timer);
    entry.timer = undefined;
    this.#change(entry, -entry.bytes);
    this.#grantWaiting();
  }

  #change({ owner }: Entry, bytes: number): void {
    this.#reservedBytes += bytes;
    owner.reservedBytes += bytes;
    owner.network.reservedBytes += bytes;
  }

  /** After the time limit, ends the reservations of now that still exist, if other messages still wait. */
  #watchContention(): void {
    if (this.#contention !== undefined) return;
    const holders = this.#granted.list();
    this.#contention = setTimeout(() => {
      this.#contention = undefined;
      for (const entry of holders) if (entry.timer !== undefined && this.#isContended) entry.onExpired();
      if (this.#isContended) this.#watchContention();
    }, EXPIRES_BESIDE_OTHERS_MS).unref();
  }
}

function hasLessReserved({ owner }: Entry, than: Entry | undefined): boolean {
  if (than === undefined) return true;
  const difference = owner.network.reservedBytes - than.owner.network.reservedBytes;
  return difference < 0 || (difference === 0 && owner.reservedBytes < than.owner.reservedBytes);
}
