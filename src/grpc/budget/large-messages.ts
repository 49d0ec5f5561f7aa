/**
 * Room for messages that do not fit into the first window of their stream: only a message that has room is granted a
 * larger window. The others wait, in order.
 */
export interface RoomOwner {
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

/** For a whole message: whoever takes longer must not keep room from others. */
const EXPIRES_MS = 60_000;

interface Entry extends RoomRequest {
  timer: NodeJS.Timeout | undefined;
}

export class LargeMessages {
  readonly #limits: RoomLimits;
  #reservedBytes = 0;
  readonly #waiting = new Set<Entry>();

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
    const { maxBytes, maxBytesPerConnection } = this.#limits;
    for (const entry of this.#waiting) {
      const { owner, bytes } = entry;
      if (this.#reservedBytes + bytes > maxBytes) return;
      if (owner.reservedBytes + bytes <= maxBytesPerConnection) this.#grant(entry);
    }
  }

  #grant(entry: Entry): void {
    this.#waiting.delete(entry);
    this.#reservedBytes += entry.bytes;
    entry.owner.reservedBytes += entry.bytes;
    entry.timer = setTimeout(entry.onExpired, EXPIRES_MS).unref();
    entry.onGranted();
  }

  #release(entry: Entry): void {
    this.#waiting.delete(entry);
    if (entry.timer === undefined) return;
    clearTimeout(entry.timer);
    entry.timer = undefined;
    this.#reservedBytes -= entry.bytes;
    entry.owner.reservedBytes -= entry.bytes;
    this.#grantWaiting();
  }
}
