import { ConnectionError, DEFAULT_MAX_FRAME_BYTES, ERROR, FRAME_HEAD_BYTES, MAX_WINDOW, PREFACE } from './frames.ts';

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  /** A view of what was read. */
  readonly payload: Buffer;
}

/** Cuts what a client sends into frames, after the preface that every connection begins with. */
export class FrameReader {
  #rest: Buffer | undefined;
  #hasPreface = false;

  get hasPreface(): boolean {
    return this.#hasPreface;
  }

  /** Calls `handle` for each frame that is complete. Throws a ConnectionError for what is none, or what `handle` throws. */
  read(chunk: Buffer, handle: (frame: Frame) => void): void {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = undefined;
    const start = this.#readPreface(bytes);
    if (start === undefined) return;
    let position: number = start;
    while (bytes.length - position >= FRAME_HEAD_BYTES) {
      const length = bytes.readUIntBE(position, 3);
      if (length > DEFAULT_MAX_FRAME_BYTES) throw new ConnectionError(ERROR.frameSize, 'a frame is too large');
      const end = position + FRAME_HEAD_BYTES + length;
      if (end > bytes.length) break;
      handle({
        type: bytes[position + 3]!,
        flags: bytes[position + 4]!,
        streamId: bytes.readUInt32BE(position + 5) & MAX_WINDOW,
        payload: bytes.subarray(position + FRAME_HEAD_BYTES, end),
      });
      position = end;
    }
    if (position < bytes.length) this.#rest = bytes.subarray(position);
  }

  /** Returns where the frames begin, or undefined while the preface is not all there. */
  #readPreface(bytes: Buffer): number | undefined {
    if (this.#hasPreface) return 0;
    const given = bytes.subarray(0, PREFACE.length);
    if (!given.equals(PREFACE.subarray(0, given.length)))
      throw new ConnectionError(ERROR.protocol, 'the client does not speak HTTP/2');
    this.#hasPreface = given.length === PREFACE.length;
    if (this.#hasPreface) return PREFACE.length;
    this.#rest = bytes;
    return undefined;
  }
}
