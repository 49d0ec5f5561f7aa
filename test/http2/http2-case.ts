/** One rule of RFC 9113 or RFC 7541: frames of a client, and what a server must do about them. */
import assert from 'node:assert/strict';
import { HpackDecoder } from '../../src/grpc/hpack/hpack-decoder.ts';
import { encodeHeaderBlock } from '../../src/grpc/hpack/hpack-encoder.ts';
import { ECHO_PATH, HELLO, SERVICE } from '../support/grpc/grpc-server.ts';
import { DATA, frame, frameMessage, GOAWAY, HEADERS, PING, type RawFrame, RST } from '../support/grpc/http2-frames.ts';

type FieldPair = readonly [name: string, value: string];

/** `section` is of RFC 9113 unless it names another one. `frames` follow the preface and an empty SETTINGS frame. */
export interface Http2Case {
  readonly section: string;
  readonly title: string;
  readonly frames: readonly (Buffer | string)[];
  readonly reaction: Reaction;
  /** The bytes are sent as they are, without preface and SETTINGS. */
  readonly isRaw?: true;
}

export interface Reaction {
  readonly text: string;
  check(frames: readonly RawFrame[]): void;
}

/** RFC 9113 §7. */
const ERROR_CODES = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  FLOW_CONTROL_ERROR: 3,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  COMPRESSION_ERROR: 9,
  ENHANCE_YOUR_CALM: 11,
} as const;
type ErrorName = keyof typeof ERROR_CODES;

const goAways = (frames: readonly RawFrame[]) =>
  frames.filter(({ type }) => type === GOAWAY).map(({ payload }) => payload.readUInt32BE(4));
const resets = (frames: readonly RawFrame[]) =>
  frames.filter(({ type }) => type === RST).map(({ streamId, payload }) => [streamId, payload.readUInt32BE(0)]);

function checkStaysOpen(frames: readonly RawFrame[]): void {
  assert.deepEqual(goAways(frames), [], 'the connection goes on');
  assert.ok(
    frames.some(({ type, flags }) => type === PING && flags === 1),
    'the last ping is answered',
  );
}

export function connectionError(name: ErrorName): Reaction {
  return {
    text: `connection error ${name}`,
    check: (frames) => assert.deepEqual(goAways(frames), [ERROR_CODES[name]]),
  };
}

/** The reaction to an error of one stream. */
export function streamError(name: ErrorName, ...streamIds: readonly number[]): Reaction {
  const ids = streamIds.length === 0 ? [1] : streamIds;
  return {
    text: `stream error ${name}`,
    check(frames) {
      checkStaysOpen(frames);
      assert.deepEqual(
        resets(frames),
        ids.map((id) => [id, ERROR_CODES[name]]),
      );
    },
  };
}

/** The message comes back with an OK, and no frame is an error. */
export function answered(streamId = 1): Reaction {
  return {
    text: 'the call is answered',
    check(frames) {
      checkStaysOpen(frames);
      assert.deepEqual(resets(frames), []);
      const own = frames.filter((received) => received.streamId === streamId);
      const data = own.filter(({ type }) => type === DATA).map(({ payload }) => payload);
      assert.deepEqual(Buffer.concat(data), MESSAGE);
      assert.ok(own.some(({ type, flags }) => type === HEADERS && (flags & 1) === 1));
    },
  };
}

/** The first header section of the answer has the status. */
export function status(expected: string): Reaction {
  return {
    text: `HTTP status ${expected}`,
    check(frames) {
      checkStaysOpen(frames);
      assert.deepEqual(resets(frames), []);
      assert.equal(findField(frames, ':status'), expected);
    },
  };
}

/** The call is refused before its end. */
export function refused(grpcStatus: string): Reaction {
  return {
    text: `gRPC status ${grpcStatus}`,
    check(frames) {
      streamError('NO_ERROR').check(frames);
      assert.equal(findField(frames, 'grpc-status'), grpcStatus);
    },
  };
}

/** Of the first header section of the answer. */
function findField(frames: readonly RawFrame[], wanted: string): string | undefined {
  const head = frames.find(({ type, streamId }) => type === HEADERS && streamId === 1);
  const fields = new HpackDecoder().decode(head!.payload);
  return fields?.find(({ name }) => name === wanted)?.value;
}

export const ignored: Reaction = {
  text: 'ignored',
  check(frames) {
    checkStaysOpen(frames);
    assert.deepEqual(resets(frames), []);
  },
};

export const [END_STREAM, ACK, END_HEADERS, PADDED, PRIORITIZED] = [0x1, 0x1, 0x4, 0x8, 0x20] as const;
export const MESSAGE = frameMessage(HELLO);
/** Answers message by message. */
export const STREAM_PATH = `/${SERVICE}/EchoAll`;
export const NEVER_PATH = `/${SERVICE}/Never`;

export const CALL: readonly FieldPair[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', ECHO_PATH],
  [':authority', 'localhost'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
];

/** The fields of a call with some replaced; undefined leaves one out. */
export function fieldsWith(changes: Readonly<Record<string, string | undefined>>): readonly FieldPair[] {
  return CALL.flatMap(([name, value]) => {
    const changed = name in changes ? changes[name] : value;
    return changed === undefined ? [] : [[name, changed] as const];
  });
}

export const withPath = (path: string): readonly FieldPair[] => fieldsWith({ ':path': path });

/** HEADERS of a whole block, of a call unless other fields are given. */
export function headers(streamId: number, fields: readonly FieldPair[] = CALL, flags = 0): Buffer {
  return frame(HEADERS, END_HEADERS | flags, streamId, encodeHeaderBlock(fields));
}

export function data(streamId: number, flags: number, content: Uint8Array = MESSAGE): Buffer {
  return frame(DATA, flags, streamId, content);
}

/** A whole call. */
export function call(streamId: number, fields: readonly FieldPair[] = CALL): Buffer {
  return Buffer.concat([headers(streamId, fields), data(streamId, END_STREAM)]);
}

export function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex');
}
