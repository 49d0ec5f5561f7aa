/**
 * Room for messages that do not fit into the first window of their stream: only a message that has room is granted a
 * larger window. The others wait. The next is one of the network, and in it of the connection, that has least room, so
 * that who has begun many messages does not come before who has begun one.
 */
import type { NetworkUse } from './network-use.ts';

export interface RoomOwner {
  readonly network: NetworkUse;
  /** What the messages of this connection have. */
  reservedBytes: number;
}

export interface RoomRequest {
  readonly owner: RoomOwner;
  readonly bytes: number;
  readonly onGranted: () => void;
  /** The message did not come in time. */
  readonly onExpired: () => void;
}

export interface Room {
  readonly isGranted: boolean;
  /** Lets others have it. May be called twice. */
  release(): void;
}

export interface RoomLimits {
  readonly maxBytes: number;
  readonly maxBytesPerConnection: number;
}

/** For a whole message, while there is room for all. */
const EXPIRES_MS = 60_000;
/** While others wait, a message that had room for this long gives way. */
const EXPIRES_BESIDE_OTHERS_MS = 5000;

interface Entry extends RoomRequest {
  timer: NodeJS.Timeout | undefined;
}

export class LargeMessages {
  readonly #limits: RoomLimits;
  #reservedBytes = 0;
  readonly #waiting = new Set<Entry>();
  readonly #granted = new Set<Entry>();
  #contention: NodeJS.Timeout | undefined;

  constructor(limits: RoomLimits) {
    this.#limits = limits;
  }

  /** `onGranted` is called at once when there is room. */
  reserve(request: RoomRequest): Room {
    const entry: Entry = { ...request, timer: undefined };
    this.#waiting.add(entry);
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

  /** Whether a message waits for others, and not for those of its own connection. */
  get #isContended(): boolean {
    for (const { owner, bytes } of this.#waiting)
      if (owner.reservedBytes + bytes <= this.#limits.maxBytesPerConnection) return true;
    return false;
  }

  /** Undefined as long as there is no room for whose turn it is: smaller messages do not pass it. */
  #findNext(): Entry | undefined {
    const { maxBytes, maxBytesPerConnection } = this.#limits;
    let next: Entry | undefined;
    for (const entry of this.#waiting)
      if (entry.owner.reservedBytes + entry.bytes <= maxBytesPerConnection && hasLessRoom(entry, next)) next = entry;
    return next === undefined || this.#reservedBytes + next.bytes > maxBytes ? undefined : next;
  }

  #grant(entry: Entry): void {
    this.#waiting.delete(entry);
    this.#granted.add(entry);
    this.#change(entry, entry.bytes);
    entry.timer = setTimeout(entry.onExpired, EXPIRES_MS).unref();
    entry.onGranted();
  }

  #release(entry: Entry): void {
    this.#waiting.delete(entry);
    if (!this.#granted.delete(entry)) return;
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

  /** Ends what has room now and still has it at the end of the time, if others still wait then. */
  #watchContention(): void {
    if (this.#contention !== undefined) return;
    const holders = [...this.#granted];
    this.#contention = setTimeout(() => {
      this.#contention = undefined;
      for (const entry of holders) if (this.#granted.has(entry) && this.#isContended) entry.onExpired();
      if (this.#isContended) this.#watchContention();
    }, EXPIRES_BESIDE_OTHERS_MS).unref();
  }
}

function hasLessRoom({ owner }: Entry, than: Entry | undefined): boolean {
  if (than === undefined) return true;
  const difference = owner.network.reservedBytes - than.owner.network.reservedBytes;
  return difference < 0 || (difference === 0 && owner.reservedBytes < than.owner.reservedBytes);
}
