/** Writes the HTTP/2 frames of many calls into one buffer, so that they are sent in one write. */
import type { Writable } from 'node:stream';
import type { BufferPool } from '../budget/buffer-pool.ts';
import { FRAME, FRAME_HEAD_BYTES } from './frames.ts';

const NOTHING = Buffer.alloc(0);
/** Dynamic Table Size Update to 0 (RFC 7541 §6.3). */
const EMPTY_TABLE = Buffer.of(0x20);

/** Outgoing frames in one buffer: many calls that arrived in one read are answered in one write. */
export class FrameWriter {
  readonly #pool: BufferPool;
  #buffer: Buffer = NOTHING;
  #length = 0;
  /** Begins the next header block. */
  #tableUpdate: Buffer = NOTHING;
  #isTableEmpty = false;

  constructor(pool: BufferPool) {
    this.#pool = pool;
  }

  get length(): number {
    return this.#length;
  }

  frame(type: number, flags: number, streamId: number, payload?: Uint8Array): void {
    this.head(payload?.length ?? 0, type, flags, streamId);
    if (payload !== undefined) this.bytes(payload, 0, payload.length);
  }

  headers(flags: number, streamId: number, block: Uint8Array): void {
    const update = this.#tableUpdate;
    this.head(update.length + block.length, FRAME.headers, flags, streamId);
    if (update.length > 0) this.bytes(update, 0, update.length);
    this.bytes(block, 0, block.length);
    this.#tableUpdate = NOTHING;
  }

  /** The client has shrunk its header table: the next block must set our table size, to 0 since we use none (RFC 7541 §4.2). */
  emptyTable(): void {
    if (!this.#isTableEmpty) this.#tableUpdate = EMPTY_TABLE;
    this.#isTableEmpty = true;
  }

  settings(pairs: readonly (readonly [setting: number, value: number])[]): void {
    this.head(6 * pairs.length, FRAME.settings, 0, 0);
    for (const [setting, value] of pairs) {
      this.byte(setting >>> 8);
      this.byte(setting);
      this.uint32(value);
    }
  }

  /** Stream 0 is the connection. */
  windowUpdate(streamId: number, increment: number): void {
    this.head(4, FRAME.windowUpdate, 0, streamId);
    this.uint32(increment);
  }

  resetStream(streamId: number, code: number): void {
    this.head(4, FRAME.resetStream, 0, streamId);
    this.uint32(code);
  }

  goAway(lastStreamId: number, code: number): void {
    this.head(8, FRAME.goAway, 0, 0);
    this.uint32(lastStreamId);
    this.uint32(code);
  }

  /** A copy of the written bytes, for frames that are sent to every client. */
  copy(): Buffer {
    return Buffer.from(this.#buffer.subarray(0, this.#length));
  }

  head(length: number, type: number, flags: number, streamId: number): void {
    this.#reserve(FRAME_HEAD_BYTES);
    const buffer = this.#buffer;
    let at = this.#length;
    buffer[at++] = length >>> 16;
    buffer[at++] = length >>> 8;
    buffer[at++] = length;
    buffer[at++] = type;
    buffer[at++] = flags;
    buffer[at++] = streamId >>> 24;
    buffer[at++] = streamId >>> 16;
    buffer[at++] = streamId >>> 8;
    buffer[at++] = streamId;
    this.#length = at;
  }

  uint32(value: number): void {
    this.#reserve(4);
    this.#length = this.#buffer.writeUInt32BE(value >>> 0, this.#length);
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#buffer[this.#length++] = value;
  }

  bytes(source: Uint8Array, start: number, end: number): void {
    this.#reserve(end - start);
    this.#buffer.set(start === 0 && end === source.length ? source : source.subarray(start, end), this.#length);
    this.#length += end - start;
  }

  /**
   * Sends the bytes written since the last flush. Their memory is reused once the stream reports the write as done, then `onSent`
   * is called: a client that does not read may keep the bytes waiting for minutes. Returns the result of `write`.
   */
  sendTo(stream: Writable, onSent: () => void = () => {}): boolean {
    const buffer = this.#buffer;
    const bytes = buffer.subarray(0, this.#length);
    this.#buffer = NOTHING;
    this.#length = 0;
    return stream.write(bytes, () => {
      this.#pool.giveBack(buffer);
      onSent();
    });
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#buffer.length) return;
    const larger = this.#pool.take(needed);
    larger.set(this.#buffer.subarray(0, this.#length));
    if (this.#buffer !== NOTHING) this.#pool.giveBack(this.#buffer);
    this.#buffer = larger;
  }
}
