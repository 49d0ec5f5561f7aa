/** The transport with clients of another implementation: Node's is nghttp2. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { echoMethods, SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import { frameMessage } from '../../../test/support/grpc/http2-frames.ts';
import type { HeaderName } from '../http2/request-head.ts';

const running = await startGrpcServer(
  [
    ...echoMethods,
    { kind: 'unary', name: 'Grow', handle: (request) => Buffer.alloc(Number(Buffer.from(request).toString()), 'x') },
    { kind: 'unary', name: 'Short', maxMessageBytes: 10, handle: (request) => request },
    {
      kind: 'unary',
      name: 'Metadata',
      handle: (request, call) => {
        const names = JSON.parse(Buffer.from(request).toString()) as HeaderName[];
        return Buffer.from(JSON.stringify(names.map((name) => call.metadata(name))));
      },
    },
  ],
  { maxMessageBytes: 8_388_608 },
);
const session = connectHttp2(`http://127.0.0.1:${running.server.port}`);
after(async () => {
  session.close();
  await running[Symbol.asyncDispose]();
});

interface Answer {
  readonly headers: Record<string, unknown>;
  readonly trailers: Record<string, unknown>;
  readonly body: Buffer;
}

async function call(method: string, body: Buffer, headers: Record<string, string> = {}): Promise<Answer> {
  const stream = session.request({
    ':method': 'POST',
    ':path': `/${SERVICE}/${method}`,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  const answer = { headers: {}, trailers: {} };
  stream.once('response', (received) => Object.assign(answer.headers, received));
  stream.once('trailers', (received) => Object.assign(answer.trailers, received));
  // The client ends a HEAD request by itself.
  if (!stream.writableEnded) stream.end(body);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return { ...answer, body: Buffer.concat(chunks) };
}

test('a method may take shorter messages than others, also expanded', async () => {
  assert.equal((await call('Short', frameMessage(Buffer.alloc(10)))).trailers['grpc-status'], '0');
  const long = Buffer.alloc(11);
  const refusals = [
    await call('Short', frameMessage(long)),
    await call('Short', frameMessage(gzipSync(long), 1), { 'grpc-encoding': 'gzip' }),
  ];
  for (const { headers } of refusals) {
    assert.equal(headers['grpc-status'], '8');
    assert.match(String(headers['grpc-message']), /at most 10 bytes/);
  }
});

test('a client that keeps no header fields is answered', async (t) => {
  const small = connectHttp2(`http://127.0.0.1:${running.server.port}`, { settings: { headerTableSize: 0 } });
  t.after(() => small.close());
  for (let round = 0; round < 3; round++) {
    const stream = small.request({
      ':method': 'POST',
      ':path': `/${SERVICE}/Echo`,
      'content-type': 'application/grpc',
    });
    stream.end(frameMessage(Buffer.from('hello')));
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
    assert.equal(headers[':status'], 200);
    stream.resume();
    await once(stream, 'close');
  }
});

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
  ['the flag of compression and no encoding', frameMessage(Buffer.from('x'), 1), {}, '13'],
  [
    'the flag of compression and no compression',
    frameMessage(Buffer.from('x'), 1),
    { 'grpc-encoding': 'identity' },
    '13',
  ],
  [
    'an encoding named like a method of objects',
    frameMessage(Buffer.from('x'), 1),
    { 'grpc-encoding': 'toString' },
    '12',
  ],
  [
    'an encoding named like objects are made',
    frameMessage(Buffer.from('x'), 1),
    { 'grpc-encoding': 'constructor' },
    '12',
  ],
  ['no message', Buffer.alloc(0), {}, '12'],
  ['two messages', Buffer.concat([frameMessage(Buffer.from('a')), frameMessage(Buffer.from('b'))]), {}, '12'],
  ['a message that is cut off', frameMessage(Buffer.from('abc')).subarray(0, 6), {}, '13'],
];
for (const [why, body, headers, status] of badMessages)
  test(`a unary call with ${why} ends with status ${status}`, async () => {
    const answer = await call('Echo', body, headers);
    assert.equal(answer.headers['grpc-status'] ?? answer.trailers['grpc-status'], status);
    assert.equal(answer.headers['grpc-accept-encoding'], 'identity,gzip,deflate');
  });

for (const contentType of ['APPLICATION/GRPC', 'application/grpc+proto', 'Application/Grpc+Proto; charset=utf-8'])
  test(`a call with content-type ${contentType} is answered`, async () => {
    const answer = await call('Echo', frameMessage(Buffer.from('hello')), { 'content-type': contentType });
    assert.equal(answer.trailers['grpc-status'], '0');
  });

for (const contentType of ['application/json', 'application/grpc-web', 'application/grpc+json', 'text/grpc', ''])
  test(`a request with content-type "${contentType}" is answered with 415 and the reason`, async () => {
    const answer = await call('Echo', frameMessage(Buffer.from('hello')), { 'content-type': contentType });
    assert.equal(answer.headers[':status'], 415);
    const reason = `content-type must be application/grpc or application/grpc+proto, got "${contentType}"`;
    assert.equal(answer.body.toString(), `Cannot answer: ${reason}\n`);
  });

test('a request that is not POST is answered with 405, and with no content when it is HEAD', async () => {
  const answer = await call('Echo', Buffer.alloc(0), { ':method': 'PUT' });
  assert.deepEqual([answer.headers[':status'], answer.headers.allow], [405, 'POST']);
  assert.equal(answer.body.toString(), 'Cannot answer: the method must be POST, got "PUT"\n');
  const head = await call('Echo', Buffer.alloc(0), { ':method': 'HEAD' });
  assert.deepEqual([head.headers[':status'], head.body.length], [405, 0]);
});

test('a request that is not gRPC and never ends is ended by the server', async () => {
  const stream = session.request({ ':method': 'POST', ':path': '/' }, { endStream: false });
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  assert.match(Buffer.concat(chunks).toString(), /^Cannot answer: content-type must be/);
});

test('a request that is not gRPC gets its status at once, and does not keep a server from stopping', async () => {
  const other = await startGrpcServer(echoMethods);
  const client = connectHttp2(`http://127.0.0.1:${other.server.port}`);
  const stream = client.request({ ':method': 'POST', ':path': '/' }, { endStream: false });
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
  assert.equal(headers[':status'], 415);
  const ended = once(stream.resume(), 'end');
  // The test would reach its time limit if the drain waited for the request.
  await other.server.drain(600_000);
  await ended;
  client.close();
});

test('status texts arrive in any language', async () => {
  const answer = await call('Größe 100%', frameMessage(Buffer.alloc(0))).catch(() => undefined);
  const path = encodeURI(`/${SERVICE}/Größe`);
  const plain = await call('x', frameMessage(Buffer.alloc(0)), { ':path': path });
  assert.equal(plain.headers['grpc-status'], '12');
  assert.equal(answer?.headers['grpc-status'] ?? '12', '12');
});

test('headers of any kind arrive as nghttp2 encodes them, over one connection', async () => {
  const read = fc.constantFrom<HeaderName>('authorization', 'forwarded', 'traceparent', 'via', 'x-forwarded-for');
  const other = fc.stringMatching(/^x-[a-z0-9-]{1,30}$/);
  const value = fc.string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 1,
    maxLength: 900,
  });
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(read, value),
      fc.dictionary(other, value, { maxKeys: 12 }),
      async (headers, others) => {
        const names = Object.keys(headers);
        const answer = await call('Metadata', frameMessage(Buffer.from(JSON.stringify(names))), {
          ...others,
          ...headers,
        });
        assert.deepEqual(JSON.parse(answer.body.subarray(5).toString()), Object.values(headers));
      },
    ),
    { numRuns: 200 },
  );
});
