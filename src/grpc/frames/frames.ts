/** Defines the types, flags, error codes, settings and sizes of HTTP/2 frames (RFC 9113). */

/** Types, flags, error codes and sizes of frames (RFC 9113). */
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
/** A client may send this many bytes on a stream before we grant more; our settings announce it. */
export const STREAM_WINDOW = 262_144;
export const DEFAULT_MAX_FRAME_BYTES = 16_384;
export const MAX_WINDOW = 0x7fff_ffff;

/** A protocol error that ends the connection. */
export class ConnectionError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}
