/** RFC 9113 §3, §4 and §5.4 to §5.5: how a connection begins, and frames as such. */

import { encodeHeaderBlock } from '../../../src/grpc/hpack/hpack-encoder.ts';
import {
  CONTINUATION,
  DATA,
  frame,
  GOAWAY,
  HEADERS,
  PING,
  PREFACE,
  PRIORITY,
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
  END_HEADERS,
  END_STREAM,
  type Http2Case,
  headers,
  hex,
  ignored,
  MESSAGE,
  streamError,
} from '../http2-case.ts';

const block = encodeHeaderBlock(CALL);
const UNKNOWN_TYPE = 0x42;
const ping = frame(PING, 0, 0, Buffer.alloc(8));

export const connectionCases: readonly Http2Case[] = [
  {
    section: '3.4',
    title: 'HTTP/1.1 instead of the preface',
    frames: ['GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
    reaction: connectionError('PROTOCOL_ERROR'),
    isRaw: true,
  },
  {
    section: '3.4',
    title: 'a preface with a wrong byte',
    frames: [`${PREFACE.slice(0, -1)}x`, frame(SETTINGS, 0, 0)],
    reaction: connectionError('PROTOCOL_ERROR'),
    isRaw: true,
  },
  {
    section: '3.4',
    title: 'a first frame that is not SETTINGS',
    frames: [PREFACE, ping],
    reaction: connectionError('PROTOCOL_ERROR'),
    isRaw: true,
  },
  {
    section: '3.4',
    title: 'a first frame that only acknowledges settings',
    frames: [PREFACE, frame(SETTINGS, ACK, 0)],
    reaction: connectionError('PROTOCOL_ERROR'),
    isRaw: true,
  },
  {
    section: '3.4',
    title: 'a call right behind the preface, before our settings came',
    frames: [PREFACE, frame(SETTINGS, 0, 0), call(1)],
    reaction: answered(),
    isRaw: true,
  },
  {
    section: '4.1',
    title: 'a frame of an unknown type',
    frames: [frame(UNKNOWN_TYPE, 0xff, 1, Buffer.from('unknown')), call(1)],
    reaction: answered(),
  },
  {
    section: '4.1',
    title: 'flags that a PING does not define',
    frames: [frame(PING, 0xfe, 0, Buffer.alloc(8))],
    reaction: ignored,
  },
  {
    section: '4.1',
    title: 'the reserved bit of the stream identifier',
    frames: [frame(HEADERS, END_HEADERS, 0x8000_0001, block), frame(DATA, END_STREAM, 0x8000_0001, MESSAGE)],
    reaction: answered(),
  },
  {
    section: '4.2',
    title: 'DATA of 16,384 bytes, the most that we allow',
    frames: [headers(1), frame(DATA, 0, 1, Buffer.concat([hex('0000004000'), Buffer.alloc(16_379)]))],
    reaction: ignored,
  },
  ...(
    [
      ['DATA', DATA, 1],
      ['HEADERS', HEADERS, 1],
      ['SETTINGS', SETTINGS, 0],
      ['a frame of an unknown type', UNKNOWN_TYPE, 1],
    ] as const
  ).map(([name, type, streamId]) => ({
    section: '4.2',
    title: `${name} of more than 16,384 bytes`,
    frames: [headers(1), frame(type, 0, streamId, Buffer.alloc(16_390))],
    reaction: connectionError('FRAME_SIZE_ERROR'),
  })),
  {
    section: '4.3',
    title: 'a field block that cannot be decoded',
    frames: [frame(HEADERS, END_HEADERS | END_STREAM, 1, hex('00 85 f2 b2 4a 84 ff'))],
    reaction: connectionError('COMPRESSION_ERROR'),
  },
  ...(
    [
      ['DATA', frame(DATA, END_STREAM, 1, MESSAGE)],
      ['HEADERS of the same stream', frame(HEADERS, END_HEADERS, 1, block)],
      ['HEADERS of another stream', frame(HEADERS, END_HEADERS, 3, block)],
      ['PRIORITY', frame(PRIORITY, 0, 1, Buffer.alloc(5))],
      ['RST_STREAM', frame(RST, 0, 1, Buffer.alloc(4))],
      ['SETTINGS', frame(SETTINGS, 0, 0)],
      ['PING', ping],
      ['GOAWAY', frame(GOAWAY, 0, 0, Buffer.alloc(8))],
      ['WINDOW_UPDATE', frame(WINDOW_UPDATE, 0, 0, hex('00000001'))],
      ['CONTINUATION of another stream', frame(CONTINUATION, END_HEADERS, 3)],
      ['a frame of an unknown type', frame(UNKNOWN_TYPE, 0, 1)],
    ] as const
  ).map(([name, interrupting]) => ({
    section: '4.3',
    title: `${name} inside a field block`,
    frames: [frame(HEADERS, 0, 1, block), interrupting],
    reaction: connectionError('PROTOCOL_ERROR'),
  })),
  {
    section: '5.4.1',
    title: 'frames behind a connection error',
    frames: [frame(PING, 0, 1, Buffer.alloc(8)), call(1)],
    reaction: connectionError('PROTOCOL_ERROR'),
  },
  {
    section: '5.4.2',
    title: 'a stream beside one with a stream error',
    frames: [headers(1), frame(WINDOW_UPDATE, 0, 1, Buffer.alloc(4)), call(3)],
    reaction: streamError('PROTOCOL_ERROR'),
  },
  {
    section: '5.5',
    title: 'a setting that is not known',
    frames: [frame(SETTINGS, 0, 0, hex('00ff 0000 0001')), call(1)],
    reaction: answered(),
  },
  {
    section: '5.5',
    title: 'an unknown frame on a stream that is not open',
    frames: [frame(UNKNOWN_TYPE, 0, 99), call(1)],
    reaction: answered(),
  },
];
