/** RFC 9113 §8: heads, contents and trailers of requests. */
import assert from 'node:assert/strict';
import { DATA, frame, PING, SETTINGS, WINDOW_UPDATE } from '../../support/grpc/http2-frames.ts';
import {
  answered,
  CALL,
  call,
  data,
  END_STREAM,
  fieldsWith,
  type Http2Case,
  headers,
  hex,
  ignored,
  MESSAGE,
  NEVER_PATH,
  STREAM_PATH,
  status,
  streamError,
  withPath,
} from '../http2-case.ts';

type Fields = readonly (readonly [name: string, value: string])[];

const and = (...more: Fields): Fields => [...CALL, ...more];
const [method, scheme, path, authority, ...regular] = CALL;

const malformedHeads: readonly (readonly [section: string, title: string, fields: Fields])[] = [
  ['8.2.1', 'an uppercase name', and(['X-Test', 'ok'])],
  ['8.2.1', 'an uppercase letter inside a name', and(['x-tEst', 'ok'])],
  ['8.2.1', 'an empty name', and(['', 'ok'])],
  ['8.2.1', 'a name with a space', and(['x test', 'ok'])],
  ['8.2.1', 'a name with a control character', and(['x\u0001', 'ok'])],
  ['8.2.1', 'a name beyond ASCII', and(['x\u00e9', 'ok'])],
  ['8.2.1', 'a name with a colon inside', and(['x:y', 'ok'])],
  ['8.2.1', 'a value with NUL', and(['x-test', 'a\0b'])],
  ['8.2.1', 'a value with LF', and(['x-test', 'a\nb'])],
  ['8.2.1', 'a value with CR', and(['x-test', 'a\rb'])],
  ['8.2.1', 'a value that begins with a space', and(['x-test', ' a'])],
  ['8.2.1', 'a value that ends with a tab', and(['x-test', 'a\t'])],
  ...['connection', 'proxy-connection', 'keep-alive', 'transfer-encoding', 'upgrade'].map(
    (name) => ['8.2.2', `the field ${name} of HTTP/1.1`, and([name, 'x'])] as const,
  ),
  ['8.2.2', 'TE other than trailers', fieldsWith({ te: 'trailers, deflate' })],
  ['8.2.2', 'an empty TE', fieldsWith({ te: '' })],
  ['8.3', 'an unknown pseudo-header field', [method!, scheme!, path!, [':test', 'ok'], ...regular]],
  ['8.3', 'a pseudo-header field of an extension', [method!, scheme!, path!, [':protocol', 'websocket'], ...regular]],
  ['8.3', 'a pseudo-header field of a response', [method!, scheme!, path!, [':status', '200'], ...regular]],
  ['8.3', 'a pseudo-header field behind a regular one', [...regular, method!, scheme!, path!]],
  ['8.3', 'the authority behind a regular field', [method!, scheme!, path!, ...regular, authority!]],
  ...CALL.slice(0, 4).map((field) => ['8.3', `${field[0]} twice`, [field, ...CALL]] as const),
  ['8.3.1', 'no :method', fieldsWith({ ':method': undefined })],
  ['8.3.1', 'no :scheme', fieldsWith({ ':scheme': undefined })],
  ['8.3.1', 'no :path', fieldsWith({ ':path': undefined })],
  ['8.3.1', 'no pseudo-header field at all', regular],
  ['8.3.1', 'no field at all', []],
  ['8.3.1', 'an empty :method', fieldsWith({ ':method': '' })],
  ['8.3.1', 'a :method that is not a token', fieldsWith({ ':method': 'PO ST' })],
  ['8.3.1', 'a :scheme that is not one', fieldsWith({ ':scheme': '1http' })],
  ['8.3.1', 'an empty :path', fieldsWith({ ':path': '' })],
  ['8.3.1', 'a :path that does not begin with a slash', fieldsWith({ ':path': 'test.v1.EchoService/Echo' })],
  ['8.3.1', 'a :path with a space', fieldsWith({ ':path': '/a b' })],
  ['8.3.1', 'a :path with a fragment', fieldsWith({ ':path': '/a#b' })],
  ['8.3.1', 'a :path of * for another method than OPTIONS', fieldsWith({ ':path': '*' })],
  ['8.3.1', 'user information in :authority', fieldsWith({ ':authority': 'user@localhost' })],
  ['8.3.1', 'a Host that differs from :authority', and(['host', 'example.org'])],
  ['8.5', 'CONNECT with a path', fieldsWith({ ':method': 'CONNECT', ':scheme': undefined })],
  ['8.5', 'CONNECT with a scheme', fieldsWith({ ':method': 'CONNECT', ':path': undefined })],
  [
    '8.5',
    'CONNECT without an authority',
    fieldsWith({ ':method': 'CONNECT', ':path': undefined, ':scheme': undefined, ':authority': undefined }),
  ],
  ['8.1.1', 'a content-length that is not a number', and(['content-length', 'ten'])],
  ['8.1.1', 'a negative content-length', and(['content-length', '-10'])],
  ['8.1.1', 'two values of content-length', and(['content-length', '10'], ['content-length', '11'])],
];

const goodHeads: readonly (readonly [section: string, title: string, fields: Fields])[] = [
  ['8.1.1', 'a content-length that is kept', and(['content-length', String(MESSAGE.length)])],
  ['8.1.1', 'the same content-length twice', and(['content-length', '10'], ['content-length', '10'])],
  ['8.2.1', 'a value with spaces inside, and beyond ASCII', and(['x-test', 'a b\u00e9'])],
  ['8.2.1', 'an empty value', and(['x-test', ''])],
  ['8.2.1', 'every other character of a name', and(["!#$%&'*+-.^_`|~09az", 'ok'])],
  ['8.2.2', 'no TE', fieldsWith({ te: undefined })],
  ['8.3', 'pseudo-header fields in another order', [authority!, path!, scheme!, method!, ...regular]],
  ['8.3.1', 'no :authority', fieldsWith({ ':authority': undefined })],
  ['8.3.1', 'a Host in place of :authority', [method!, scheme!, path!, ['host', 'localhost'], ...regular]],
  ['8.3.1', 'a Host that differs from :authority in case and default port', and(['host', 'LOCALHOST:80'])],
  ['8.3.1', 'a scheme that is not of HTTP', fieldsWith({ ':scheme': 'grpc+unix' })],
];

const open = headers(1, withPath(NEVER_PATH));
const openWithLength = (length: number) => headers(1, [...withPath(STREAM_PATH), ['content-length', String(length)]]);
const PROTOCOL_ERROR = streamError('PROTOCOL_ERROR');

const bodies: readonly (readonly [
  section: string,
  title: string,
  frames: Buffer[],
  reaction: Http2Case['reaction'],
])[] = [
  [
    '8.1',
    'a second HEADERS that does not end the stream',
    [open, data(1, 0), headers(1, [['x-test', 'ok']])],
    PROTOCOL_ERROR,
  ],
  ['8.1', 'trailers', [headers(1), data(1, 0), headers(1, [['x-test', 'ok']], END_STREAM)], answered()],
  ['8.1', 'trailers without fields', [headers(1), data(1, 0), headers(1, [], END_STREAM)], answered()],
  ['8.1', 'DATA behind trailers', [open, headers(1, [], END_STREAM), data(1, 0)], streamError('STREAM_CLOSED')],
  [
    '8.1',
    'an empty DATA frame that ends the stream',
    [headers(1), data(1, 0), data(1, END_STREAM, Buffer.alloc(0))],
    answered(),
  ],
  ['8.1.1', 'less content than content-length', [openWithLength(11), data(1, END_STREAM)], PROTOCOL_ERROR],
  ['8.1.1', 'more content than content-length', [openWithLength(9), data(1, 0)], PROTOCOL_ERROR],
  [
    '8.1.1',
    'more content than content-length in two frames',
    [openWithLength(11), data(1, 0), data(1, END_STREAM)],
    PROTOCOL_ERROR,
  ],
  ['8.1.1', 'content-length and no content', [headers(1, and(['content-length', '10']), END_STREAM)], PROTOCOL_ERROR],
  [
    '8.1.1',
    'content-length and trailers before the content is whole',
    [openWithLength(11), data(1, 0), headers(1, [], END_STREAM)],
    PROTOCOL_ERROR,
  ],
  [
    '8.1.1',
    'content-length of 0 and no content',
    [headers(1, [...withPath(STREAM_PATH), ['content-length', '0']], END_STREAM)],
    ignored,
  ],
  [
    '8.1.1',
    'a request that is malformed and not gRPC',
    [
      headers(1, [
        [':method', 'GET'],
        [':path', '/'],
        ['x', ' '],
      ]),
    ],
    PROTOCOL_ERROR,
  ],
  [
    '8.1.1',
    'a call beside a malformed one',
    [headers(1, and(['X', 'y'])), call(3), frame(PING, 0, 0, Buffer.alloc(8))],
    PROTOCOL_ERROR,
  ],
  ['8.1.1', 'DATA on a stream that was malformed', [headers(1, and(['X', 'y'])), data(1, END_STREAM)], PROTOCOL_ERROR],
  ['8.3', 'a pseudo-header field in trailers', [open, data(1, 0), headers(1, [method!], END_STREAM)], PROTOCOL_ERROR],
  ['8.2.1', 'an uppercase name in trailers', [open, data(1, 0), headers(1, [['X', 'y']], END_STREAM)], PROTOCOL_ERROR],
  [
    '8.2.2',
    'a field of HTTP/1.1 in trailers',
    [open, data(1, 0), headers(1, [['connection', 'close']], END_STREAM)],
    PROTOCOL_ERROR,
  ],
  [
    '8.3.1',
    'OPTIONS of *, which is not gRPC',
    [headers(1, [[':method', 'OPTIONS'], scheme!, [':path', '*']], END_STREAM)],
    status('415'),
  ],
  ['8.5', 'CONNECT, which we do not do', [headers(1, [[':method', 'CONNECT'], authority!])], status('415')],
  [
    '8.1',
    'a request that is not gRPC, and whose content follows',
    [headers(1, [[':method', 'POST'], scheme!, path!]), data(1, 0), data(1, END_STREAM)],
    status('415'),
  ],
  [
    '8.1.1',
    'wrong content of a request that is not gRPC',
    [headers(1, [[':method', 'POST'], scheme!, path!, ['content-length', '1']]), data(1, END_STREAM)],
    PROTOCOL_ERROR,
  ],
  ['8.1', 'a call that is not ended yet', [headers(1), data(1, 0)], ignored],
];

/** The text that says why goes out once, when the window allows, however much of the request still comes. */
const longRefusedRequest: Http2Case = {
  section: '8.1',
  title: 'a long request that is not gRPC, while the window for its answer is closed',
  frames: [
    frame(SETTINGS, 0, 0, hex('0004 00000000')),
    headers(1, [[':method', 'POST'], scheme!, path!]),
    ...Array.from({ length: 4 }, () => data(1, 0, Buffer.alloc(16_000))),
    frame(WINDOW_UPDATE, 0, 1, hex('0000ffff')),
  ],
  reaction: {
    text: 'one answer, then NO_ERROR',
    check(frames) {
      streamError('NO_ERROR').check(frames);
      const content = Buffer.concat(frames.filter(({ type }) => type === DATA).map(({ payload }) => payload));
      assert.match(content.toString(), /^Cannot answer: content-type must be [^\n]*\n$/);
    },
  },
};

export const requestCases: readonly Http2Case[] = [
  longRefusedRequest,
  ...malformedHeads.map(([section, title, fields]) => ({
    section,
    title,
    frames: [headers(1, fields)],
    reaction: PROTOCOL_ERROR,
  })),
  ...goodHeads.map(([section, title, fields]) => ({ section, title, frames: [call(1, fields)], reaction: answered() })),
  ...bodies.map(([section, title, frames, reaction]) => ({ section, title, frames, reaction })),
];
