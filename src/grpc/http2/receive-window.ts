/** Decides how many bytes a client may send on a connection, by the bytes that were used and the free memory. */
import { ConnectionError, ERROR } from '../frames/frames.ts';

/** How many bytes a client may send on a connection before the server uses any. */
export const CONNECTION_WINDOW = 4_194_304;
/** With less than this, a connection might complete none of its calls. */
const MIN_WINDOW = 65_536;

/** The bytes of requests that a connection keeps, and the window that follows from them. */
export interface Kept {
  readonly bytes: number;
  readonly maxBytes: number;
  /** Bytes reserved for messages larger than the first window of their stream. */
  readonly reservedBytes: number;
}

/**
 * How many bytes a client may send. It may send as many bytes again as were used: a request that is not used yet takes its
 * part of the window. But while there is memory, a quarter of the window stays open, so that requests that have begun can
 * complete.
 */
export class ReceiveWindow {
  #left = CONNECTION_WINDOW;

  /** Throws a ConnectionError when the client sends more than it may. */
  use(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0) throw new ConnectionError(ERROR.flowControl, 'the window of the connection is exceeded');
  }

  /** Whether it is time to check how much can be granted. */
  get isLow(): boolean {
    return this.#left < CONNECTION_WINDOW / 2;
  }

  /** How many bytes to grant now; 0 while there are too few for a frame. */
  takeCredit(kept: Kept): number {
    const credit = aim(kept) - this.#left;
    const isDue = credit >= CONNECTION_WINDOW / 2 || (credit > 0 && this.#left < MIN_WINDOW);
    if (!isDue) return 0;
    this.#left += credit;
    return credit;
  }

  /** Whether the client can send no more, and only the end of a call changes that. */
  isShut(kept: Kept): boolean {
    return this.#left < MIN_WINDOW && aim(kept) < MIN_WINDOW;
  }
}

function aim({ bytes, maxBytes, reservedBytes }: Kept): number {
  const least = Math.min(CONNECTION_WINDOW / 4, maxBytes + reservedBytes - bytes);
  return Math.max(CONNECTION_WINDOW + reservedBytes - bytes, least);
}
