/** Buffers the bytes of a request until its message is whole, within the memory budget. */
import type { MemoryReservation } from '../budget/large-messages.ts';
import { STREAM_WINDOW } from '../frames/frames.ts';
import type { Http2Stream } from '../http2/stream.ts';
import { type FramedMessage, MESSAGE_HEAD_BYTES, MessageSplitter } from '../protocol/message-reader.ts';
import { StatusError } from '../protocol/status.ts';

export interface RequestBufferOptions {
  readonly stream: Http2Stream;
  readonly maxMessageBytes: number;
  /** Called when a message under way did not get its memory in time. */
  readonly onExpired: () => void;
}

/** The bytes of a request that are kept until their message is complete, and the memory that they take. */
export class RequestBuffer {
  readonly #stream: Http2Stream;
  readonly #splitter: MessageSplitter;
  readonly #onExpired: () => void;
  #keptBytes = 0;
  #isDropped = false;
  /** Reserves memory for the part of a large message beyond the first window of its stream. */
  #reserved: { readonly bytes: number; readonly reservation: MemoryReservation } | undefined;

  constructor({ stream, maxMessageBytes, onExpired }: RequestBufferOptions) {
    this.#stream = stream;
    this.#splitter = new MessageSplitter(maxMessageBytes, stream.connection.memory.blocks);
    this.#onExpired = onExpired;
  }

  /** A message has begun and is not complete. */
  get hasBegun(): boolean {
    return this.#splitter.length > 0;
  }

  /** There is no memory yet for the rest of the message under way: the client may not send it. */
  get waitsForRoom(): boolean {
    return this.#reserved !== undefined && !this.#reserved.reservation.isGranted;
  }

  keep(bytes: Buffer): void {
    this.#keptBytes += bytes.length;
    this.#splitter.push(bytes);
    this.#stream.keep(bytes.length);
  }

  /** The length of the next message with its prefix; 0 while it is incomplete. */
  get nextBytes(): number {
    return this.#splitter.nextBytes;
  }

  /** Whether the next message is compressed. It must be complete. */
  get isNextCompressed(): boolean {
    return this.#splitter.isNextCompressed;
  }

  take(): FramedMessage | undefined {
    return this.#splitter.take();
  }

  /** Must be called when the taken message is used and no byte of it is kept. */
  recycle(): void {
    this.#splitter.recycle();
  }

  checkNothingLeft(): void {
    if (this.hasBegun) throw new StatusError('INTERNAL', 'Cannot read the message: it is cut off');
  }

  /** Lets the caller send the rest of the message under way. */
  reserveRoom(): void {
    const stream = this.#stream;
    const { needed, length } = this.#splitter;
    const bytes = needed - STREAM_WINDOW;
    if (bytes > 0 && this.#reserved === undefined) {
      const onGranted = (): void => {
        stream.connection.progress.mark();
        stream.grantNow(bytes);
      };
      const reservation = stream.connection.memory.reserve({ bytes, onGranted, onExpired: this.#onExpired });
      // The grant can end the largest unfinished call of the connection, which may be this one.
      if (this.#isDropped) reservation.release();
      else this.#reserved = { bytes, reservation };
    }
    stream.ensureWindow(Math.max(needed, MESSAGE_HEAD_BYTES) - length);
  }

  /** Must be called when bytes of the request were used: the caller may send as many again. */
  release(bytes: number): void {
    if (bytes === 0 || this.#keptBytes === 0) return;
    this.#keptBytes -= bytes;
    this.#reserved?.reservation.release();
    this.#stream.release(bytes);
    this.#stream.grant(bytes - (this.#reserved?.bytes ?? 0));
    this.#reserved = undefined;
  }

  /** Drops the request: no more of it is used. */
  drop(): void {
    this.#isDropped = true;
    this.#splitter.clear();
    this.#reserved?.reservation.release();
    this.#reserved = undefined;
    if (this.#keptBytes > 0) this.#stream.release(this.#keptBytes);
    this.#keptBytes = 0;
  }
}
