/** RFC 9113 §5.1 to §5.3: states and identifiers of streams. */

import { encodeHeaderBlock } from '../../../src/grpc/hpack/hpack-encoder.ts';
import { CONTINUATION, frame, HEADERS, PING, PRIORITY, RST, WINDOW_UPDATE } from '../../support/grpc/http2-frames.ts';
import {
  answered,
  CALL,
  call,
  connectionError,
  data,
  END_HEADERS,
  END_STREAM,
  type Http2Case,
  headers,
  hex,
  ignored,
  MESSAGE,
  NEVER_PATH,
  PRIORITIZED,
  STREAM_PATH,
  streamError,
  withPath,
} from '../http2-case.ts';

const CANCEL = hex('00000008');
const reset = (streamId: number) => frame(RST, 0, streamId, CANCEL);
const grow = (streamId: number) => frame(WINDOW_UPDATE, 0, streamId, hex('00000001'));
const unanswered = Buffer.concat([headers(1, withPath(NEVER_PATH)), data(1, END_STREAM)]);
const cancelled = Buffer.concat([headers(1, withPath(STREAM_PATH)), reset(1)]);
/** Two messages of a unary call: we answer and reset before the client has ended. */
const answeredEarly = Buffer.concat([headers(1), data(1, 0), data(1, 0)]);

/** What comes first in a state, then the frame, its name and the reaction. */
const states: readonly (readonly [string, readonly Buffer[], string, Buffer, Http2Case['reaction']])[] = [
  ['idle', [], 'DATA', data(1, END_STREAM), connectionError('PROTOCOL_ERROR')],
  ['idle', [], 'RST_STREAM', reset(1), connectionError('PROTOCOL_ERROR')],
  ['idle', [], 'WINDOW_UPDATE', grow(1), connectionError('PROTOCOL_ERROR')],
  ['idle', [], 'CONTINUATION', frame(CONTINUATION, END_HEADERS, 1), connectionError('PROTOCOL_ERROR')],
  ['idle', [], 'PRIORITY', frame(PRIORITY, 0, 1, Buffer.alloc(5)), ignored],
  ['idle, of the server', [call(3)], 'DATA', data(2, END_STREAM), connectionError('PROTOCOL_ERROR')],
  ['idle, of the server', [call(3)], 'RST_STREAM', reset(2), connectionError('PROTOCOL_ERROR')],
  ['idle, of the server', [call(3)], 'WINDOW_UPDATE', grow(2), connectionError('PROTOCOL_ERROR')],
  ['half-closed (remote)', [unanswered], 'DATA', data(1, 0), streamError('STREAM_CLOSED')],
  ['half-closed (remote)', [unanswered], 'HEADERS', headers(1), streamError('STREAM_CLOSED')],
  ['half-closed (remote)', [unanswered], 'trailers', headers(1, [], END_STREAM), streamError('STREAM_CLOSED')],
  ['half-closed (remote)', [unanswered], 'WINDOW_UPDATE', grow(1), ignored],
  ['half-closed (remote)', [unanswered], 'PRIORITY', frame(PRIORITY, 0, 1, Buffer.alloc(5)), ignored],
  ['half-closed (remote)', [unanswered], 'RST_STREAM', reset(1), ignored],
  ['closed', [call(1)], 'DATA', data(1, END_STREAM), streamError('STREAM_CLOSED')],
  ['closed', [call(1)], 'HEADERS', headers(1), connectionError('STREAM_CLOSED')],
  ['closed', [call(1)], 'trailers', headers(1, [], END_STREAM), connectionError('STREAM_CLOSED')],
  ['closed', [call(1)], 'CONTINUATION', frame(CONTINUATION, END_HEADERS, 1), connectionError('PROTOCOL_ERROR')],
  ['closed', [call(1)], 'WINDOW_UPDATE', grow(1), ignored],
  ['closed', [call(1)], 'RST_STREAM', reset(1), ignored],
  ['closed', [call(1)], 'PRIORITY', frame(PRIORITY, 0, 1, Buffer.alloc(5)), ignored],
  ['closed by a reset of the client', [cancelled], 'DATA', data(1, END_STREAM), streamError('STREAM_CLOSED')],
  ['closed by a reset of the client', [cancelled], 'HEADERS', headers(1), connectionError('STREAM_CLOSED')],
  [
    'closed by a reset of the client',
    [cancelled],
    'trailers',
    headers(1, [], END_STREAM),
    connectionError('STREAM_CLOSED'),
  ],
  ['closed by a reset of the client', [cancelled], 'WINDOW_UPDATE', grow(1), ignored],
  ['closed by a reset of the client', [cancelled], 'RST_STREAM', reset(1), ignored],
  ['closed by a reset of ours', [answeredEarly], 'DATA', data(1, 0), streamError('NO_ERROR')],
  ['closed by a reset of ours', [answeredEarly], 'trailers', headers(1, [], END_STREAM), streamError('NO_ERROR')],
  ['closed by a reset of ours', [answeredEarly], 'WINDOW_UPDATE', grow(1), streamError('NO_ERROR')],
  ['closed by a reset of ours', [answeredEarly], 'RST_STREAM', reset(1), streamError('NO_ERROR')],
];

export const streamCases: readonly Http2Case[] = [
  ...states.map(([state, before, name, last, reaction]) => ({
    section: '5.1',
    title: `${name} on a stream that is ${state}`,
    frames: [...before, last],
    reaction,
  })),
  {
    section: '5.1',
    title: 'headers behind a field block of a stream that we reset, which is still decoded',
    frames: [
      answeredEarly,
      // Adds a field to the table, which the next block refers to.
      frame(HEADERS, END_HEADERS | END_STREAM, 1, hex('40 01 61 01 31')),
      frame(HEADERS, END_HEADERS, 3, Buffer.concat([encodeHeaderBlock(CALL), hex('be')])),
      data(3, END_STREAM),
    ],
    reaction: streamError('NO_ERROR'),
  },
  {
    section: '5.1',
    title: 'DATA on a stream that its client ended after we reset it',
    frames: [answeredEarly, data(1, END_STREAM), data(1, 0)],
    reaction: {
      text: 'stream error STREAM_CLOSED',
      check: (frames) =>
        streamError('STREAM_CLOSED').check(
          frames.filter(({ type, payload }) => type !== RST || payload.readUInt32BE(0) !== 0),
        ),
    },
  },
  {
    section: '5.1.1',
    title: 'an even stream identifier',
    frames: [headers(2)],
    reaction: connectionError('PROTOCOL_ERROR'),
  },
  {
    section: '5.1.1',
    title: 'stream 0',
    frames: [headers(0)],
    reaction: connectionError('PROTOCOL_ERROR'),
  },
  ...[0, END_STREAM].map((flags) => ({
    section: '5.1.1',
    title: `an identifier below that of the last stream${flags === 0 ? '' : ', ending the stream'}`,
    frames: [headers(5), headers(3, CALL, flags)],
    reaction: connectionError('PROTOCOL_ERROR'),
  })),
  {
    section: '5.1.1',
    title: 'an identifier that was passed over long ago',
    frames: [call(5), call(7), call(101), headers(3)],
    reaction: connectionError('PROTOCOL_ERROR'),
  },
  {
    section: '5.1.1',
    title: 'DATA on a stream that was passed over',
    frames: [call(5), data(3, END_STREAM)],
    reaction: streamError('STREAM_CLOSED', 3),
  },
  {
    section: '5.1.1',
    title: 'identifiers with gaps',
    frames: [headers(3), headers(1_000_001), data(1_000_001, END_STREAM)],
    reaction: answered(1_000_001),
  },
  {
    section: '5.1.2',
    title: 'one stream more than we allow',
    frames: Array.from({ length: 1025 }, (_, index) => headers(2 * index + 1, withPath(NEVER_PATH))),
    reaction: streamError('REFUSED_STREAM', 2049),
  },
  {
    section: '5.1.2',
    title: 'what a client still sends on a stream that we refused',
    frames: [
      ...Array.from({ length: 1025 }, (_, index) => headers(2 * index + 1, withPath(NEVER_PATH))),
      data(2049, END_STREAM, MESSAGE),
    ],
    reaction: streamError('REFUSED_STREAM', 2049),
  },
  {
    section: '5.3.2',
    title: 'PRIORITY on streams in any state',
    frames: [1, 3, 99, 4].map((streamId) => frame(PRIORITY, 0, streamId, Buffer.alloc(5))).concat(call(3)),
    reaction: answered(3),
  },
  {
    section: '5.3.2',
    title: 'HEADERS with a priority',
    frames: [
      frame(HEADERS, END_HEADERS | PRIORITIZED, 1, Buffer.concat([hex('00000000ff'), encodeHeaderBlock(CALL)])),
      data(1, END_STREAM),
    ],
    reaction: answered(),
  },
  {
    section: 'RFC 7540 §5.3.1',
    title: 'PRIORITY of a stream that depends on itself',
    frames: [frame(PRIORITY, 0, 1, hex('00000001ff'))],
    reaction: connectionError('PROTOCOL_ERROR'),
  },
  {
    section: 'RFC 7540 §5.3.1',
    title: 'HEADERS of a stream that depends on itself',
    frames: [frame(HEADERS, END_HEADERS | PRIORITIZED, 1, Buffer.concat([hex('00000001ff'), encodeHeaderBlock(CALL)]))],
    reaction: connectionError('PROTOCOL_ERROR'),
  },
  {
    section: '5.1',
    title: 'a call beside a stream that its client reset',
    frames: [cancelled, call(3), frame(PING, 0, 0, Buffer.alloc(8))],
    reaction: answered(3),
  },
];
