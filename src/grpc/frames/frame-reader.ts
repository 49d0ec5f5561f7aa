/** Cuts what a client sends into HTTP/2 frames, after the preface, and refuses frames that are too large. */
import { ConnectionError, DEFAULT_MAX_FRAME_BYTES, ERROR, FRAME_HEAD_BYTES, MAX_WINDOW, PREFACE } from './frames.ts';

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  /** A view of the bytes that were read. */
  readonly payload: Buffer;
}

/** Returns whether to continue with the next frame. */
type HandleFrame = (frame: Frame) => boolean;

/** Cuts what a client sends into frames, after the preface that every connection begins with. */
export class FrameReader {
  /** The incomplete frame or preface at the end of the last read. */
  #rest: Buffer = NOTHING;
  #hasPreface = false;

  get hasPreface(): boolean {
    return this.#hasPreface;
  }

  /**
   * Calls `handle` for each complete frame until it returns false: then the bytes after that frame are returned, to be
   * read again. Throws a ConnectionError for bytes that are not a frame, and the errors of `handle`.
   */
  read(chunk: Buffer, handle: HandleFrame): Buffer | undefined {
    if (!this.#hasPreface) return this.#readFirst(Buffer.concat([this.#rest, chunk]), handle);
    return this.#readFrames(chunk, this.#finishFrame(chunk, handle), handle);
  }

  #readFirst(bytes: Buffer, handle: HandleFrame): Buffer | undefined {
    const given = bytes.subarray(0, PREFACE.length);
    if (!given.equals(PREFACE.subarray(0, given.length)))
      throw new ConnectionError(ERROR.protocol, 'the client does not speak HTTP/2');
    this.#hasPreface = given.length === PREFACE.length;
    this.#rest = this.#hasPreface ? NOTHING : bytes;
    return this.#hasPreface ? this.#readFrames(bytes, PREFACE.length, handle) : undefined;
  }

  #readFrames(bytes: Buffer, start: number, handle: HandleFrame): Buffer | undefined {
    let position = start;
    while (bytes.length - position >= FRAME_HEAD_BYTES) {
      const end = position + readFrameBytes(bytes, position);
      if (end > bytes.length) break;
      const mayGoOn = handle(readFrame(bytes, position, end));
      position = end;
      if (!mayGoOn && position < bytes.length) return bytes.subarray(position);
    }
    // A copy: a few bytes must not keep the whole read.
    if (position < bytes.length) this.#rest = Buffer.from(bytes.subarray(position));
    return undefined;
  }

  /** Completes the frame at the end of the last read, and copies only that frame. Returns where the next one begins. */
  #finishFrame(chunk: Buffer, handle: HandleFrame): number {
    if (this.#rest.length === 0) return 0;
    const head = this.#fillRest(chunk, 0, FRAME_HEAD_BYTES);
    if (this.#rest.length < FRAME_HEAD_BYTES) return head;
    const bytes = readFrameBytes(this.#rest, 0);
    const end = this.#fillRest(chunk, head, bytes);
    if (this.#rest.length < bytes) return end;
    const frame = readFrame(this.#rest, 0, bytes);
    this.#rest = NOTHING;
    handle(frame);
    return end;
  }

  /** Takes the missing bytes from the chunk. Returns where the remainder begins. */
  #fillRest(chunk: Buffer, from: number, bytes: number): number {
    const end = Math.min(chunk.length, from + Math.max(0, bytes - this.#rest.length));
    if (end > from) this.#rest = Buffer.concat([this.#rest, chunk.subarray(from, end)]);
    return end;
  }
}

const NOTHING = Buffer.alloc(0);

/** The length of the whole frame, as its header states it. */
function readFrameBytes(bytes: Buffer, start: number): number {
  const length = bytes.readUIntBE(start, 3);
  if (length > DEFAULT_MAX_FRAME_BYTES) throw new ConnectionError(ERROR.frameSize, 'a frame is too large');
  return FRAME_HEAD_BYTES + length;
}

function readFrame(bytes: Buffer, start: number, end: number): Frame {
  return {
    type: bytes[start + 3]!,
    flags: bytes[start + 4]!,
    streamId: bytes.readUInt32BE(start + 5) & MAX_WINDOW,
    payload: bytes.subarray(start + FRAME_HEAD_BYTES, end),
  };
}
