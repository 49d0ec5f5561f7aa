/** RFC 9113: types, flags and error codes of frames, and a writer that collects them. */
export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const FLAG = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

export const ERROR = {
  none: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  enhanceYourCalm: 11,
} as const;

export const SETTING = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
export const FRAME_HEAD_BYTES = 9;
export const DEFAULT_WINDOW = 65_535;
/** What a client may send on a stream before we grant more; our settings announce it. */
export const STREAM_WINDOW = 262_144;
export const DEFAULT_MAX_FRAME_BYTES = 16_384;
export const MAX_WINDOW = 0x7fff_ffff;

/** A fault that ends the connection. */
export class ConnectionError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const FIRST_BYTES = 16_384;
/** A connection that once sent megabytes need not keep as many. */
const MAX_KEPT_BYTES = 262_144;

/** Frames on their way out, in one buffer: many calls that came in one read are answered in one write. */
export class FrameWriter {
  #buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  frame(type: number, flags: number, streamId: number, payload?: Uint8Array): void {
    this.head(payload?.length ?? 0, type, flags, streamId);
    if (payload !== undefined) this.bytes(payload, 0, payload.length);
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

  /** What was written since the last time, as a buffer of its own. */
  take(): Buffer {
    const taken = Buffer.from(this.#buffer.subarray(0, this.#length));
    this.#length = 0;
    if (this.#buffer.length > MAX_KEPT_BYTES) this.#buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
    return taken;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(this.#length + bytes)));
    larger.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = larger;
  }
}
