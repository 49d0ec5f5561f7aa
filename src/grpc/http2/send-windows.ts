/** Tracks the send window of a connection, and the streams that wait for it (flow control, RFC 9113 §6.9). */
import { type Linked, LinkedQueue } from '../../memory/linked-queue.ts';
import {
  ConnectionError,
  DEFAULT_MAX_FRAME_BYTES,
  DEFAULT_WINDOW,
  ERROR,
  MAX_WINDOW,
  SETTING,
} from '../frames/frames.ts';

/** A stream whose bytes wait for the window of the connection. */
export interface BlockedStream extends Linked<BlockedStream> {
  sendMore(): void;
}

/** How much the client lets us send: on the connection, on a new stream, and in a frame (RFC 9113 §5.2, §6.5.2). */
export class SendWindows {
  #left = DEFAULT_WINDOW;
  #ofNewStreams = DEFAULT_WINDOW;
  #maxFrameBytes = DEFAULT_MAX_FRAME_BYTES;
  /** Streams that wait because the window of the connection was closed, oldest first. */
  readonly #blocked = new LinkedQueue<BlockedStream>();

  get left(): number {
    return this.#left;
  }

  get ofNewStreams(): number {
    return this.#ofNewStreams;
  }

  get maxFrameBytes(): number {
    return this.#maxFrameBytes;
  }

  use(bytes: number): void {
    this.#left -= bytes;
  }

  add(increment: number): void {
    if (increment === 0) throw new ConnectionError(ERROR.protocol, 'a window grows by 0');
    this.#left += increment;
    if (this.#left > MAX_WINDOW) throw new ConnectionError(ERROR.flowControl, 'a window is too large');
  }

  /** Returns by how much the windows of all streams change. */
  applySetting(setting: number, value: number): number {
    if (setting === SETTING.maxFrameSize) this.#maxFrameBytes = Math.min(value, 4 * DEFAULT_MAX_FRAME_BYTES);
    if (setting !== SETTING.initialWindowSize) return 0;
    const change = value - this.#ofNewStreams;
    this.#ofNewStreams = value;
    return change;
  }

  wait(stream: BlockedStream): void {
    this.#blocked.add(stream);
  }

  forget(stream: BlockedStream): void {
    this.#blocked.delete(stream);
  }

  sendBlocked(): void {
    for (let stream = this.#blocked.first; stream !== undefined; stream = this.#blocked.first) {
      this.#blocked.delete(stream);
      stream.sendMore();
      if (this.#left <= 0) return;
    }
  }

  clear(): void {
    for (let stream = this.#blocked.first; stream !== undefined; stream = this.#blocked.first)
      this.#blocked.delete(stream);
  }
}
