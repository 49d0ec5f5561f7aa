import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { createLog } from '../../telemetry/log.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { realWorld } from '../../world.ts';
import { type GrpcServer, openGrpcServer } from '../server.ts';
import type { GrpcMethod } from '../service.ts';
import { encodeHeaderBlock } from './header-block.ts';

/** The transport under clients of other make (node's is nghttp2), and under bytes that no client should send. */

const methods: GrpcMethod[] = [
  { kind: 'unary', name: 'Echo', handle: (request) => request },
  { kind: 'unary', name: 'Later', handle: async (request) => request },
  { kind: 'unary', name: 'Never', handle: () => new Promise(() => {}) },
  { kind: 'unary', name: 'Grow', handle: (request) => Buffer.alloc(Number(Buffer.from(request).toString()), 'x') },
  {
    kind: 'unary',
    name: 'Metadata',
    handle: (request, call) => {
      const names = JSON.parse(Buffer.from(request).toString()) as string[];
      return Buffer.from(JSON.stringify(names.map((name) => call.metadata(name))));
    },
  },
  {
    kind: 'stream',
    name: 'EchoAll',
    async *handle(requests) {
      for await (const request of requests) yield request;
    },
  },
];

const log = createLog('silent');
let server: GrpcServer;
let session: ClientHttp2Session;

before(async () => {
  server = await openGrpcServer({
    services: [{ name: 'test.v1.Test', methods }],
    host: '127.0.0.1',
    port: 0,
    maxMessageBytes: 8_388_608,
    log,
    metrics: createMetrics(),
    world: realWorld,
  });
  session = connectHttp2(`http://127.0.0.1:${server.port}`);
});

after(async () => {
  session.close();
  await server.drain(1000);
});

interface Answer {
  readonly headers: Record<string, unknown>;
  readonly trailers: Record<string, unknown>;
  readonly body: Buffer;
}

function frameMessage(message: Uint8Array, flag = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

async function call(method: string, body: Buffer, headers: Record<string, string> = {}): Promise<Answer> {
  const stream = session.request({
    ':method': 'POST',
    ':path': `/test.v1.Test/${method}`,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  const answer = { headers: {}, trailers: {} };
  stream.once('response', (received) => Object.assign(answer.headers, received));
  stream.once('trailers', (received) => Object.assign(answer.trailers, received));
  stream.end(body);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return { ...answer, body: Buffer.concat(chunks) };
}

test('an answer has the headers, the framed message and the trailers of the protocol', async () => {
  const answer = await call('Echo', frameMessage(Buffer.from('hello')));
  assert.equal(answer.headers[':status'], 200);
  assert.equal(answer.headers['content-type'], 'application/grpc');
  assert.deepEqual(answer.body, frameMessage(Buffer.from('hello')));
  assert.equal(answer.trailers['grpc-status'], '0');
});

for (const method of ['Echo', 'Later'])
  test(`messages of megabytes pass both ways through every window (${method})`, async () => {
    const message = Buffer.alloc(8_000_000, 'abcdefg');
    const answer = await call(method, frameMessage(message));
    assert.ok(answer.body.equals(frameMessage(message)));
    assert.equal(answer.trailers['grpc-status'], '0');
  });

test('many large answers at once share the window of the connection', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => call('Grow', frameMessage(Buffer.from(String(300_000 + index))))),
  );
  assert.deepEqual(
    answers.map(({ body }) => body.length),
    Array.from({ length: 20 }, (_, index) => 300_005 + index),
  );
});

test('a stream of megabytes is echoed message by message', async () => {
  const messages = Array.from({ length: 200 }, (_, index) => frameMessage(Buffer.alloc(20_000 + index, index)));
  const answer = await call('EchoAll', Buffer.concat(messages));
  assert.ok(answer.body.equals(Buffer.concat(messages)));
});

for (const [encoding, message] of [
  ['gzip', gzipSync('hello')],
  ['identity', Buffer.from('hello')],
] as const)
  test(`a message in encoding ${encoding} is understood, alone and in a stream`, async () => {
    const body = frameMessage(message, encoding === 'identity' ? 0 : 1);
    const plain = frameMessage(Buffer.from('hello'));
    const headers = { 'grpc-encoding': encoding };
    assert.deepEqual((await call('Echo', body, headers)).body, plain);
    const stream = await call('EchoAll', Buffer.concat([body, plain, body]), headers);
    assert.deepEqual(stream.body, Buffer.concat([plain, plain, plain]));
  });

const badMessages: [why: string, body: Buffer, headers: Record<string, string>, status: string][] = [
  ['an unknown encoding', frameMessage(Buffer.from('x'), 1), { 'grpc-encoding': 'zstd' }, '12'],
  ['bytes that are not compressed as they say', frameMessage(Buffer.from('x'), 1), { 'grpc-encoding': 'gzip' }, '13'],
  [
    'more than the limit once expanded',
    frameMessage(gzipSync(Buffer.alloc(9_000_000)), 1),
    { 'grpc-encoding': 'gzip' },
    '8',
  ],
  ['an unknown flag', frameMessage(Buffer.from('x'), 2), {}, '13'],
  ['no message', Buffer.alloc(0), {}, '12'],
  ['two messages', Buffer.concat([frameMessage(Buffer.from('a')), frameMessage(Buffer.from('b'))]), {}, '12'],
  ['a message that is cut off', frameMessage(Buffer.from('abc')).subarray(0, 6), {}, '13'],
];
for (const [why, body, headers, status] of badMessages)
  test(`a unary call with ${why} ends with status ${status}`, async () => {
    const answer = await call('Echo', body, headers);
    assert.equal(answer.headers['grpc-status'] ?? answer.trailers['grpc-status'], status);
  });

test('what is not gRPC is answered with 415', async () => {
  assert.equal((await call('Echo', Buffer.alloc(0), { 'content-type': 'application/json' })).headers[':status'], 415);
  assert.equal(
    (await call('Echo', Buffer.alloc(0), { 'content-type': 'application/grpc-web' })).headers[':status'],
    415,
  );
});

test('status texts arrive in any language', async () => {
  const answer = await call('Größe 100%', frameMessage(Buffer.alloc(0))).catch(() => undefined);
  const path = encodeURI('/test.v1.Test/Größe');
  const plain = await call('x', frameMessage(Buffer.alloc(0)), { ':path': path });
  assert.equal(plain.headers['grpc-status'], '12');
  assert.equal(answer?.headers['grpc-status'] ?? '12', '12');
});

test('headers of any kind arrive as nghttp2 encodes them, over one connection', async () => {
  const name = fc.stringMatching(/^x-[a-z0-9-]{1,30}$/);
  const value = fc.string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 1,
    maxLength: 900,
  });
  await fc.assert(
    fc.asyncProperty(fc.dictionary(name, value, { maxKeys: 12 }), async (headers) => {
      const names = Object.keys(headers);
      const answer = await call('Metadata', frameMessage(Buffer.from(JSON.stringify(names))), { ...headers });
      assert.deepEqual(JSON.parse(answer.body.subarray(5).toString()), Object.values(headers));
    }),
    { numRuns: 200 },
  );
});

interface RawFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const [DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION] = Array.from(
  { length: 10 },
  (_, type) => type,
) as [number, number, number, number, number, number, number, number, number, number];

function frame(type: number, flags: number, streamId: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

function readFrames(bytes: Buffer): RawFrame[] {
  const frames: RawFrame[] = [];
  for (let position = 0; position + 9 <= bytes.length; ) {
    const end = position + 9 + bytes.readUIntBE(position, 3);
    const streamId = bytes.readUInt32BE(position + 5);
    const payload = bytes.subarray(position + 9, end);
    frames.push({ type: bytes[position + 3]!, flags: bytes[position + 4]!, streamId, payload });
    position = end;
  }
  return frames;
}

function block(path = '/test.v1.Test/Echo'): Buffer {
  return encodeHeaderBlock([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    ['content-type', 'application/grpc'],
  ]);
}

const hello = frameMessage(Buffer.from('hello'));
const openSocket = async (): Promise<Socket> => {
  const socket = connect(server.port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
};

/** Sends the bytes and reads until the server ends the connection, or has nothing more to say to a ping. */
async function talk(...parts: (Buffer | string)[]): Promise<RawFrame[]> {
  const socket = await openSocket();
  const chunks: Buffer[] = [];
  const isDone = (): boolean =>
    readFrames(Buffer.concat(chunks)).some(
      ({ type, flags, payload }) => type === PING && flags === 1 && String(payload) === 'the last',
    );
  const done = new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (isDone()) resolve();
    });
    socket.on('close', () => resolve());
    socket.on('error', () => resolve());
  });
  for (const part of parts) socket.write(part);
  socket.write(frame(PING, 0, 0, Buffer.from('the last')));
  await done;
  socket.destroy();
  return readFrames(Buffer.concat(chunks));
}

const start = [PREFACE, frame(SETTINGS, 0, 0)];
const NO_ERROR = 0;
const faults: [why: string, code: number, ...frames: (Buffer | string)[]][] = [
  ['does not begin as HTTP/2 does', 1, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['has a frame above the largest size', 6, ...start, frame(DATA, 0, 1, Buffer.alloc(16_385))],
  ['has data on stream 0', 1, ...start, frame(DATA, 0, 0, hello)],
  ['has data on a stream that was not opened', 1, ...start, frame(DATA, 0, 5, hello)],
  ['opens an even stream', 1, ...start, frame(HEADERS, 4, 2, block())],
  ['opens stream 0', 1, ...start, frame(HEADERS, 4, 0, block())],
  ['opens streams in the wrong order', 5, ...start, frame(HEADERS, 5, 5, block()), frame(HEADERS, 4, 3, block())],
  ['pushes', 1, ...start, frame(PUSH, 4, 1, Buffer.alloc(4))],
  ['continues no header block', 1, ...start, frame(CONTINUATION, 4, 1, block())],
  ['interrupts a header block', 1, ...start, frame(HEADERS, 0, 1, block()), frame(PING, 0, 0, Buffer.alloc(8))],
  [
    'continues the header block of another stream',
    1,
    ...start,
    frame(HEADERS, 0, 1, block()),
    frame(CONTINUATION, 4, 3),
  ],
  [
    'never ends a header block',
    11,
    ...start,
    frame(HEADERS, 0, 1),
    ...Array.from({ length: 70 }, () => frame(CONTINUATION, 0, 1)),
  ],
  [
    'has a header block that is too large',
    11,
    ...start,
    frame(HEADERS, 0, 1),
    ...Array.from({ length: 3 }, () => frame(CONTINUATION, 0, 1, Buffer.alloc(16_000))),
  ],
  ['has headers that can not be decoded', 9, ...start, frame(HEADERS, 4, 1, Buffer.of(0xfe))],
  [
    'has padding longer than its frame',
    1,
    ...start,
    frame(HEADERS, 4, 1, block('/test.v1.Test/Later')),
    frame(DATA, 8, 1, Buffer.of(9, 1)),
  ],
  ['has settings of 5 bytes', 6, ...start, frame(SETTINGS, 0, 0, Buffer.alloc(5))],
  ['has settings on a stream', 1, ...start, frame(SETTINGS, 0, 1)],
  ['acknowledges settings with content', 6, ...start, frame(SETTINGS, 1, 0, Buffer.alloc(6))],
  ['sets a window above 2^31', 3, ...start, frame(SETTINGS, 0, 0, Buffer.from('0004ffffffff', 'hex'))],
  ['sets the largest frame to 100', 1, ...start, frame(SETTINGS, 0, 0, Buffer.from('000500000064', 'hex'))],
  ['sets push to 2', 1, ...start, frame(SETTINGS, 0, 0, Buffer.from('000200000002', 'hex'))],
  ['pings with 7 bytes', 6, ...start, frame(PING, 0, 0, Buffer.alloc(7))],
  ['pings on a stream', 1, ...start, frame(PING, 0, 1, Buffer.alloc(8))],
  ['grows a window by 0', 1, ...start, frame(WINDOW_UPDATE, 0, 0, Buffer.alloc(4))],
  ['grows a window with 3 bytes', 6, ...start, frame(WINDOW_UPDATE, 0, 0, Buffer.alloc(3))],
  [
    'grows the window of the connection above 2^31',
    3,
    ...start,
    frame(WINDOW_UPDATE, 0, 0, Buffer.from('7fffffff', 'hex')),
  ],
  ['resets a stream that was not opened', 1, ...start, frame(RST, 0, 7, Buffer.alloc(4))],
  ['resets with 3 bytes', 6, ...start, frame(HEADERS, 4, 1, block()), frame(RST, 0, 1, Buffer.alloc(3))],
  ['goes away on a stream', 1, ...start, frame(GOAWAY, 0, 1, Buffer.alloc(8))],
  ['has a priority of 4 bytes', 6, ...start, frame(PRIORITY, 0, 1, Buffer.alloc(4))],
  [
    'sends more than the window of a stream',
    3,
    ...start,
    frame(HEADERS, 4, 1, block('/test.v1.Test/EchoAll')),
    ...Array.from({ length: 400 }, () =>
      frame(
        DATA,
        0,
        1,
        Buffer.concat(
          [Buffer.from('000000000b', 'hex'), Buffer.alloc(11)].concat(
            Array.from({ length: 900 }, () => Buffer.from('0000000000', 'hex')),
          ),
        ),
      ),
    ),
  ],
];
for (const [why, code, ...frames] of faults)
  test(`a connection that ${why} ends with error ${code}`, async () => {
    const goAway = (await talk(...frames)).find(({ type }) => type === GOAWAY);
    assert.equal(goAway?.payload.readUInt32BE(4), code);
  });

test('calls that are cancelled again and again end the connection', async () => {
  const rapid = Array.from({ length: 6000 }, (_, index) => [
    frame(HEADERS, 4, 2 * index + 1, block('/test.v1.Test/Never')),
    frame(RST, 0, 2 * index + 1, Buffer.from('00000008', 'hex')),
  ]);
  const goAway = (await talk(...start, Buffer.concat(rapid.flat()))).find(({ type }) => type === GOAWAY);
  assert.equal(goAway?.payload.readUInt32BE(4), 11);
});

test('more streams at once than were granted are refused, the others are not disturbed', async () => {
  const opens = Array.from({ length: 1030 }, (_, index) =>
    frame(HEADERS, 4, 2 * index + 1, block('/test.v1.Test/Later')),
  );
  const frames = await talk(...start, ...opens);
  const resets = frames.filter(({ type }) => type === RST);
  assert.equal(resets.length, 6);
  assert.ok(resets.every(({ payload }) => payload.readUInt32BE(0) === 7));
});

test('a window of a stream that grows by 0 resets that stream alone', async () => {
  const frames = await talk(
    ...start,
    frame(HEADERS, 4, 1, block('/test.v1.Test/Never')),
    frame(WINDOW_UPDATE, 0, 1, Buffer.alloc(4)),
    frame(HEADERS, 4, 3, block()),
    frame(DATA, 1, 3, hello),
  );
  const resets = frames.filter(({ type }) => type === RST);
  assert.deepEqual(
    resets.map(({ streamId, payload }) => [streamId, payload.readUInt32BE(0)]),
    [[1, 1]],
  );
  assert.deepEqual(frames.find(({ type, streamId }) => type === DATA && streamId === 3)?.payload, hello);
});

test('bytes may come one by one, with padding, priorities and unknown frames', async () => {
  const padded = Buffer.concat([Buffer.of(3), Buffer.alloc(5), block(), Buffer.alloc(3)]);
  const data = Buffer.concat([Buffer.of(2), hello, Buffer.alloc(2)]);
  const bytes = Buffer.concat([
    Buffer.from(PREFACE),
    frame(SETTINGS, 0, 0, Buffer.from('000100000000' + '00990000ffff', 'hex')),
    frame(PRIORITY, 0, 1, Buffer.alloc(5)),
    frame(0x42, 0xff, 1, Buffer.from('unknown')),
    frame(HEADERS, 0x8 | 0x20, 1, padded.subarray(0, 20 + padded.length - 20)),
    frame(CONTINUATION, 0, 1),
    frame(CONTINUATION, 4, 1),
    frame(DATA, 0x8 | 0x1, 1, data),
  ]);
  const frames = await talk(...Array.from(bytes, (byte) => Buffer.of(byte)));
  const answer = frames.find(({ type, streamId }) => type === DATA && streamId === 1);
  assert.deepEqual(answer?.payload, hello);
});

test('an answer waits for the window of its stream, in the frames that the client allows', async () => {
  const tiny = frame(SETTINGS, 0, 0, Buffer.from('000400000004', 'hex'));
  const calls = [frame(HEADERS, 4, 1, block()), frame(DATA, 1, 1, hello)];
  const closed = await talk(PREFACE, tiny, ...calls);
  const dataOf = (frames: RawFrame[]) =>
    Buffer.concat(frames.filter(({ type }) => type === DATA).map(({ payload }) => payload));
  assert.equal(dataOf(closed).length, 4);
  assert.ok(!closed.some(({ type, flags }) => type === HEADERS && (flags & 1) === 1));
  const more = frame(WINDOW_UPDATE, 0, 1, Buffer.from('00000003', 'hex'));
  const opened = await talk(PREFACE, tiny, ...calls, more, frame(SETTINGS, 0, 0, Buffer.from('000400000064', 'hex')));
  assert.deepEqual(dataOf(opened), hello);
  assert.ok(opened.some(({ type, flags }) => type === HEADERS && (flags & 1) === 1));
});

test('whatever bytes come, other connections are answered', async () => {
  const good = [...start.map((part) => Buffer.from(part)), frame(HEADERS, 4, 1, block()), frame(DATA, 1, 1, hello)];
  const anyFrame = fc
    .tuple(
      fc.integer({ min: 0, max: 11 }),
      fc.integer({ min: 0, max: 255 }),
      fc.integer({ min: 0, max: 9 }),
      fc.uint8Array({ maxLength: 40 }),
    )
    .map(([type, flags, streamId, payload]) => frame(type, flags, streamId, payload));
  await fc.assert(
    fc.asyncProperty(fc.array(anyFrame, { maxLength: 12 }), fc.boolean(), async (frames, isAfterCall) => {
      await talk(...(isAfterCall ? good : start), ...frames);
    }),
    { numRuns: 150 },
  );
  assert.equal((await call('Echo', hello)).trailers['grpc-status'], '0');
});

test('a drain tells clients to go, answers what is under way, and ends', async () => {
  const other = await openGrpcServer({
    services: [{ name: 'test.v1.Test', methods }],
    host: '127.0.0.1',
    port: 0,
    maxMessageBytes: 1000,
    log,
    metrics: createMetrics(),
    world: realWorld,
  });
  const client = connectHttp2(`http://127.0.0.1:${other.port}`);
  await once(client, 'localSettings');
  const codes: number[] = [];
  client.on('goaway', (code) => codes.push(code));
  await other.drain(60_000);
  assert.deepEqual([...new Set(codes)], [NO_ERROR]);
});

test('a drain does not wait for those who say nothing, nor for those who do not answer', async () => {
  const other = await openGrpcServer({
    services: [{ name: 'test.v1.Test', methods }],
    host: '127.0.0.1',
    port: 0,
    maxMessageBytes: 1000,
    log,
    metrics: createMetrics(),
    world: realWorld,
  });
  const silent = connect(other.port, '127.0.0.1');
  const deaf = connect(other.port, '127.0.0.1');
  deaf.write(Buffer.concat([Buffer.from(PREFACE), frame(SETTINGS, 0, 0)]));
  await Promise.all([once(silent, 'data'), once(deaf, 'data')]);
  const ends = [once(silent.resume(), 'close'), once(deaf.resume(), 'close')];
  await other.drain(600_000);
  await Promise.all(ends);
});
