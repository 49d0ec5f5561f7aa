/** RFC 9113 §6: each type of frame. */
import { encodeHeaderBlock } from '../../../src/grpc/hpack/hpack-encoder.ts';
import {
  CONTINUATION,
  frame,
  frameMessage,
  GOAWAY,
  HEADERS,
  PING,
  PRIORITY,
  PUSH,
  RST,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../support/grpc/http2-frames.ts';
import {
  ACK,
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
  PADDED,
  PRIORITIZED,
  refused,
  STREAM_PATH,
  streamError,
  withPath,
} from '../http2-case.ts';

const block = encodeHeaderBlock(CALL);
const MAX_INCREMENT = hex('7fffffff');
const settings = (text: string, flags = 0, streamId = 0) => frame(SETTINGS, flags, streamId, hex(text));
const grow = (streamId: number, increment: string) => frame(WINDOW_UPDATE, 0, streamId, hex(increment));
const open = headers(1, withPath(NEVER_PATH));
/** Empty messages, 5 bytes each, which the method never takes: 16,000 bytes a frame. */
const emptyMessages = Buffer.concat(Array.from({ length: 3200 }, () => frameMessage(Buffer.alloc(0))));
const CONTENT_WITH_PADDING = Buffer.concat([Buffer.of(6), MESSAGE, Buffer.alloc(6)]);

const PROTOCOL_ERROR = connectionError('PROTOCOL_ERROR');
const FRAME_SIZE_ERROR = connectionError('FRAME_SIZE_ERROR');
const FLOW_CONTROL_ERROR = connectionError('FLOW_CONTROL_ERROR');

const rows: readonly (readonly [section: string, title: string, frames: Buffer[], reaction: Http2Case['reaction']])[] =
  [
    ['6.1', 'DATA on stream 0', [data(0, END_STREAM)], PROTOCOL_ERROR],
    ['6.1', 'DATA with padding', [headers(1), data(1, PADDED | END_STREAM, CONTENT_WITH_PADDING)], answered()],
    [
      '6.1',
      'DATA of padding alone',
      [headers(1), data(1, PADDED, Buffer.of(3, 0, 0, 0)), data(1, END_STREAM)],
      answered(),
    ],
    [
      '6.1',
      'DATA whose padding is as long as the frame',
      [headers(1), data(1, PADDED, Buffer.of(2, 0))],
      PROTOCOL_ERROR,
    ],
    [
      '6.1',
      'DATA with the flag PADDED and nothing else',
      [headers(1), data(1, PADDED, Buffer.alloc(0))],
      PROTOCOL_ERROR,
    ],
    ['6.1', 'wrong padding on a stream that is closed', [call(1), data(1, PADDED, Buffer.of(9))], PROTOCOL_ERROR],
    [
      '6.2',
      'HEADERS with padding and priority',
      [
        frame(
          HEADERS,
          PADDED | PRIORITIZED | END_HEADERS,
          1,
          Buffer.concat([Buffer.of(3), Buffer.alloc(5), block, Buffer.alloc(3)]),
        ),
        data(1, END_STREAM),
      ],
      answered(),
    ],
    [
      '6.2',
      'HEADERS whose padding is as long as the frame',
      [frame(HEADERS, PADDED | END_HEADERS, 1, Buffer.concat([Buffer.of(block.length + 1), block]))],
      PROTOCOL_ERROR,
    ],
    [
      '6.2',
      'HEADERS too short for its priority',
      [frame(HEADERS, PRIORITIZED | END_HEADERS, 1, Buffer.alloc(4))],
      FRAME_SIZE_ERROR,
    ],
    ['6.3', 'PRIORITY on stream 0', [frame(PRIORITY, 0, 0, Buffer.alloc(5))], PROTOCOL_ERROR],
    ['6.3', 'PRIORITY of 4 bytes', [frame(PRIORITY, 0, 1, Buffer.alloc(4))], FRAME_SIZE_ERROR],
    ['6.4', 'RST_STREAM on stream 0', [frame(RST, 0, 0, Buffer.alloc(4))], PROTOCOL_ERROR],
    ['6.4', 'RST_STREAM on an idle stream', [frame(RST, 0, 7, Buffer.alloc(4))], PROTOCOL_ERROR],
    ['6.4', 'RST_STREAM of 3 bytes', [headers(1), frame(RST, 0, 1, Buffer.alloc(3))], FRAME_SIZE_ERROR],
    [
      '6.4',
      'RST_STREAM with a code that is not known',
      [open, frame(RST, 0, 1, hex('000000ff')), call(3)],
      answered(3),
    ],
    ['6.5', 'SETTINGS on a stream', [settings('', 0, 1)], PROTOCOL_ERROR],
    ['6.5', 'SETTINGS of 5 bytes', [settings('0000000000')], FRAME_SIZE_ERROR],
    ['6.5', 'an acknowledgement with content', [settings('000100000000', ACK)], FRAME_SIZE_ERROR],
    ['6.5', 'an acknowledgement', [settings('', ACK), call(1)], answered()],
    ['6.5.2', 'SETTINGS_ENABLE_PUSH of 2', [settings('0002 00000002')], PROTOCOL_ERROR],
    ['6.5.2', 'SETTINGS_ENABLE_PUSH of 0', [settings('0002 00000000')], ignored],
    ['6.5.2', 'SETTINGS_INITIAL_WINDOW_SIZE above 2^31-1', [settings('0004 80000000')], FLOW_CONTROL_ERROR],
    ['6.5.2', 'SETTINGS_MAX_FRAME_SIZE below 16,384', [settings('0005 00003fff')], PROTOCOL_ERROR],
    ['6.5.2', 'SETTINGS_MAX_FRAME_SIZE above 16,777,215', [settings('0005 01000000')], PROTOCOL_ERROR],
    ['6.5.2', 'SETTINGS_HEADER_TABLE_SIZE of 0', [settings('0001 00000000'), call(1)], answered()],
    [
      '6.5.2',
      'SETTINGS_MAX_CONCURRENT_STREAMS of 0, which limits only us',
      [settings('0003 00000000'), call(1)],
      answered(),
    ],
    [
      '6.5.3',
      'one setting twice, of which the last counts',
      [settings('0004 00000000 0004 0000ffff'), call(1)],
      answered(),
    ],
    ['6.6', 'PUSH_PROMISE', [headers(1), frame(PUSH, END_HEADERS, 1, Buffer.alloc(4))], PROTOCOL_ERROR],
    ['6.7', 'PING on a stream', [frame(PING, 0, 1, Buffer.alloc(8))], PROTOCOL_ERROR],
    ['6.7', 'PING of 7 bytes', [frame(PING, 0, 0, Buffer.alloc(7))], FRAME_SIZE_ERROR],
    ['6.7', 'PING of 9 bytes', [frame(PING, 0, 0, Buffer.alloc(9))], FRAME_SIZE_ERROR],
    ['6.8', 'GOAWAY on a stream', [frame(GOAWAY, 0, 1, Buffer.alloc(8))], PROTOCOL_ERROR],
    ['6.8', 'GOAWAY of 7 bytes', [frame(GOAWAY, 0, 0, Buffer.alloc(7))], FRAME_SIZE_ERROR],
    ['6.9', 'WINDOW_UPDATE of 0 for the connection', [grow(0, '00000000')], PROTOCOL_ERROR],
    ['6.9', 'WINDOW_UPDATE of 0 for a stream', [open, grow(1, '00000000')], streamError('PROTOCOL_ERROR')],
    ['6.9', 'WINDOW_UPDATE of 0 for a closed stream', [call(1), grow(1, '00000000')], ignored],
    ['6.9', 'WINDOW_UPDATE with the reserved bit', [call(1), grow(0, '80000001')], answered()],
    ['6.9', 'WINDOW_UPDATE of 3 bytes for the connection', [grow(0, '000001')], FRAME_SIZE_ERROR],
    ['6.9', 'WINDOW_UPDATE of 5 bytes for a stream', [open, grow(1, '0000000001')], FRAME_SIZE_ERROR],
    ['6.9', 'WINDOW_UPDATE on an idle stream', [grow(1, '00000001')], PROTOCOL_ERROR],
    [
      '6.9.1',
      'a window of the connection above 2^31-1',
      [frame(WINDOW_UPDATE, 0, 0, MAX_INCREMENT)],
      FLOW_CONTROL_ERROR,
    ],
    [
      '6.9.1',
      'a window of a stream above 2^31-1',
      [open, frame(WINDOW_UPDATE, 0, 1, MAX_INCREMENT)],
      streamError('FLOW_CONTROL_ERROR'),
    ],
    [
      '6.9.1',
      'more DATA than the window of a stream',
      [headers(1, withPath(STREAM_PATH)), ...Array.from({ length: 400 }, () => data(1, 0, emptyMessages))],
      FLOW_CONTROL_ERROR,
    ],
    [
      '6.9.2',
      'an initial window that makes the window of a stream larger than 2^31-1',
      [open, grow(1, '7fff0000'), settings('0004 7fffffff')],
      FLOW_CONTROL_ERROR,
    ],
    [
      '6.9.2',
      'a window that is negative for a while',
      [settings('0004 00000003'), call(1), settings('0004 00000000'), grow(1, '00000010')],
      answered(),
    ],
    [
      '6.9.2',
      'an initial window that grows again',
      [settings('0004 00000000'), call(1), settings('0004 0000ffff')],
      answered(),
    ],
    ['6.10', 'CONTINUATION without HEADERS', [frame(CONTINUATION, END_HEADERS, 1, block)], PROTOCOL_ERROR],
    [
      '6.10',
      'CONTINUATION behind a whole block',
      [headers(1), frame(CONTINUATION, END_HEADERS, 1, block)],
      PROTOCOL_ERROR,
    ],
    [
      '6.10',
      'CONTINUATION on stream 0',
      [frame(HEADERS, 0, 1, block), frame(CONTINUATION, END_HEADERS, 0)],
      PROTOCOL_ERROR,
    ],
    [
      '6.10',
      'a block in three frames, the last of which is empty',
      [
        frame(HEADERS, 0, 1, block.subarray(0, 10)),
        frame(CONTINUATION, 0, 1, block.subarray(10)),
        frame(CONTINUATION, END_HEADERS, 1),
        data(1, END_STREAM),
      ],
      answered(),
    ],
    [
      '6.10',
      'a block that begins with an empty frame',
      [frame(HEADERS, 0, 1), frame(CONTINUATION, END_HEADERS, 1, block), data(1, END_STREAM)],
      answered(),
    ],
    [
      '10.5.1',
      'a field block that never ends',
      [frame(HEADERS, 0, 1), ...Array.from({ length: 70 }, () => frame(CONTINUATION, 0, 1))],
      connectionError('ENHANCE_YOUR_CALM'),
    ],
    [
      '10.5.1',
      'fields that grow beyond 32,768 bytes by references',
      [
        frame(
          HEADERS,
          END_HEADERS,
          1,
          // A field with a value of 3,000 bytes, and 20 references to it.
          Buffer.concat([block, hex('40 01 61 7f b9 16'), Buffer.alloc(3000, 'x'), Buffer.alloc(20, 0xbe)]),
        ),
      ],
      refused('8'),
    ],
    [
      '10.5.1',
      'a field block larger than 98,304 bytes',
      [frame(HEADERS, 0, 1), ...Array.from({ length: 7 }, () => frame(CONTINUATION, 0, 1, Buffer.alloc(16_000)))],
      connectionError('ENHANCE_YOUR_CALM'),
    ],
  ];

export const frameCases: readonly Http2Case[] = rows.map(([section, title, frames, reaction]) => ({
  section,
  title,
  frames,
  reaction,
}));
