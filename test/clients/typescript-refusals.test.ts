/** What becomes of batches of `clients/typescript` that a service refuses as a whole, or that something else answers. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { constants, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { Metadata, Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js';
import { connectGrpc } from '../../clients/typescript/grpc-client.ts';
import { connectHttp } from '../../clients/typescript/http-client.ts';
import type { Event } from '../../clients/typescript/messages.ts';
import { createRouter } from '../../clients/typescript/router.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { startReceiver } from '../support/network/receiver.ts';

const EVENT = { finished: { requestId: 'r', outputTokens: 1, at: '2026-01-01T00:00:00.000Z' } };
/** JSON has no integers of this kind, and neither has an int32. */
const UNENCODABLE: Event = { finished: { ...EVENT.finished, outputTokens: 1n as never } };
const TAKEN = '{"accepted":"1","refused":"0"}';

/** Starts a service over HTTP that answers its first batch in one way, and takes the others. */
function startRefusing(refuse: (response: ServerResponse) => void) {
  return startReceiver((_request, response, index) => {
    if (index === 0) refuse(response);
    else response.end(TAKEN);
  });
}

for (const code of [400, 413])
  test(`connectHttp() drops and counts a batch that is refused with ${code}, and sends the next`, async () => {
    await using service = await startRefusing((response) => response.writeHead(code).end('the reason'));
    const errors: unknown[] = [];
    const client = connectHttp(service.url, { onError: (error) => void errors.push(error) });
    client.report(EVENT);
    await waitUntil(() => client.stats().dropped === 1);
    assert.match(String(client.stats().error), /the reason/);
    assert.match(String(errors[0]), /the reason/);
    client.report(EVENT);
    assert.deepEqual(await client.close(), { accepted: 1, refused: 0, dropped: 1 });
  });

for (const code of [404, 429, 501])
  test(`connectHttp() keeps a batch that a service or proxy answers with ${code}`, async () => {
    await using service = await startRefusing((response) => response.writeHead(code).end('the reason'));
    const errors: unknown[] = [];
    const client = connectHttp(service.url, { onError: (error) => void errors.push(error) });
    client.report(EVENT);
    await waitUntil(() => errors.length > 0);
    assert.match(String(errors[0]), /the reason/);
    assert.deepEqual(await client.close(), { accepted: 1, refused: 0, dropped: 0 });
  });

for (const answer of ['{}', 'null', '{"accepted":"many","refused":"0"}', '{"accepted":1.5,"refused":0}'])
  test(`connectHttp() keeps a batch that something answers with ${answer}`, async () => {
    await using service = await startRefusing((response) => response.end(answer));
    const client = connectHttp(service.url);
    client.report(EVENT);
    await waitUntil(() => client.stats().error);
    assert.match(String(client.stats().error), /does not come from Trivet/);
    assert.deepEqual(await client.close(), { accepted: 1, refused: 0, dropped: 0 });
  });

for (const answer of [
  'null',
  '{"outputs":1}',
  '{"outputs":[null],"metadata":{"modelVersion":"m@1"}}',
  '{"outputs":[]}',
])
  test(`the TypeScript router falls back when something answers a prediction with ${answer}`, async () => {
    await using service = await startReceiver((_request, response) => response.end(answer));
    const router = createRouter({ client: connectHttp(service.url), model: 'm', deadlineMs: 30_000 });
    const choice = await router.choose(1000, ['10.0.0.1']);
    assert.match(String(choice.error), /does not come from Trivet/);
  });

test('connectHttp() tries again when the service says, or at once when it is closed', async () => {
  const cameMs: number[] = [];
  await using service = await startReceiver((_request, response, index) => {
    cameMs.push(performance.now());
    if (index === 1) response.end(TAKEN);
    else response.writeHead(503, { 'retry-after': index === 0 ? '2' : '60' }).end();
  });
  const client = connectHttp(service.url);
  client.report(EVENT);
  await waitUntil(() => client.stats().accepted === 1);
  assert.ok(cameMs[1]! - cameMs[0]! >= 1990, `after ${cameMs[1]! - cameMs[0]!} ms`);
  client.report(EVENT);
  await waitUntil(() => client.stats().error);
  const closed = client.close();
  await waitUntil(() => cameMs.length === 4);
  assert.equal((await closed).dropped, 1);
});

test('what onError throws or rejects with ends neither the gateway nor its reports', async () => {
  for (const onError of [
    () => {
      throw new Error('thrown');
    },
    // A function without a result may be an asynchronous one.
    (() => Promise.reject(new Error('rejected'))) as () => void,
  ]) {
    await using service = await startRefusing((response) => response.writeHead(503).end());
    const client = connectHttp(service.url, { onError });
    client.report(EVENT);
    await waitUntil(() => client.stats().accepted === 1);
    await client.close();
  }
});

test('an event that cannot be encoded is refused, and the others are sent', async () => {
  await using service = await startReceiver((_request, response) => response.end(TAKEN));
  const client = connectHttp(service.url);
  client.report(UNENCODABLE);
  assert.match(String(client.stats().error), /BigInt/);
  client.report(EVENT);
  assert.deepEqual(await client.close(), { accepted: 1, refused: 1, dropped: 0 });
});

for (const [refused, hinted] of [
  [status.INVALID_ARGUMENT, status.UNAVAILABLE],
  [status.RESOURCE_EXHAUSTED, status.RESOURCE_EXHAUSTED],
] as const)
  test(`connectGrpc() drops what ${status[refused]} refuses, and tries again when ${status[hinted]} says when`, async () => {
    const cameMs: number[] = [];
    await using service = await startGrpcReports((_call, done) => {
      const index = cameMs.push(performance.now()) - 1;
      const metadata = new Metadata();
      if (index === 1) metadata.set('grpc-retry-pushback-ms', '2000');
      if (index > 1) done(null, Buffer.from([8, 1]));
      else if (index === 1) done({ code: hinted, details: 'no room', metadata });
      else done({ code: refused, details: 'the reason: it must be at most 9 bytes' });
    });
    const client = connectGrpc(service.address);
    client.report(UNENCODABLE);
    client.report(EVENT);
    await waitUntil(() => client.stats().dropped === 1);
    assert.match(String(client.stats().error), /the reason/);
    client.report(EVENT);
    await waitUntil(() => client.stats().accepted === 1);
    assert.ok(cameMs[2]! - cameMs[1]! >= 1990, `after ${cameMs[2]! - cameMs[1]!} ms`);
    assert.deepEqual(await client.close(), { accepted: 1, refused: 1, dropped: 1 });
  });

const WAYS_TO_REFUSE: readonly (readonly [string, (stream: ServerHttp2Stream) => void])[] = [
  ['a 404, as of a proxy without a route', (stream) => stream.respond({ ':status': 404 }, { endStream: true })],
  ['a page with status 200', respondPage],
  ['a reset that asks it to be calm', (stream) => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)],
  ['the end of its connection that asks it to be calm', endCalmly],
  ['RESOURCE_EXHAUSTED, as limits of rate', (stream) => refuse(stream, status.RESOURCE_EXHAUSTED, 'rate limited')],
  ['an error whose text has 413', (stream) => refuse(stream, status.UNKNOWN, 'Cannot reach 10.4.1.3:4130 or 413')],
];
for (const [answer, answerFirst] of WAYS_TO_REFUSE)
  test(`connectGrpc() keeps a batch that something answers with ${answer}`, async () => {
    await using service = await startBehindProxy(answerFirst);
    const errors: unknown[] = [];
    const client = connectGrpc(service.address, { onError: (error) => void errors.push(error) });
    client.report(EVENT);
    await waitUntil(() => errors.length > 0);
    assert.deepEqual(await client.close(), { accepted: 1, refused: 0, dropped: 0 });
  });

const WAYS_TO_SAY_TOO_LARGE: readonly (readonly [string, (stream: ServerHttp2Stream) => void])[] = [
  ['413', (stream) => stream.respond({ ':status': 413 }, { endStream: true })],
  ['the text of 413 alone, as Envoy', (stream) => refuse(stream, status.UNKNOWN, 'Payload Too Large')],
];
for (const [answer, answerFirst] of WAYS_TO_SAY_TOO_LARGE)
  test(`connectGrpc() drops an event that is too large for a proxy, which answers with ${answer}`, async () => {
    await using service = await startBehindProxy(answerFirst);
    const client = connectGrpc(service.address);
    client.report(EVENT);
    await waitUntil(() => client.stats().dropped === 1);
    assert.match(String(client.stats().error), /413|Too Large/);
    client.report(EVENT);
    assert.deepEqual(await client.close(), { accepted: 1, refused: 0, dropped: 1 });
  });

function respondPage(stream: ServerHttp2Stream): void {
  stream.respond({ ':status': 200, 'content-type': 'text/html' });
  stream.end('<html><body>Be back soon</body></html>');
}

function endCalmly(stream: ServerHttp2Stream): void {
  stream.session?.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
}

function refuse(stream: ServerHttp2Stream, code: status, details: string): void {
  const trailers = { 'grpc-status': String(code), 'grpc-message': details };
  stream.respond({ 'content-type': 'application/grpc', ...trailers }, { endStream: true });
}

/** Starts a proxy that answers the first call itself; it takes an event of the others. */
async function startBehindProxy(answerFirst: (stream: ServerHttp2Stream) => void) {
  const server = createServer();
  let calls = 0;
  server.on('stream', (stream) => {
    // A stream that is reset emits an error.
    stream.on('error', () => {});
    if (calls++ === 0) answerFirst(stream);
    else takeOne(stream);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return { address: `127.0.0.1:${port}`, [Symbol.asyncDispose]: async () => void server.close() };
}

function takeOne(stream: ServerHttp2Stream): void {
  stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(Buffer.from([0, 0, 0, 0, 2, 8, 1]));
}

test('connectGrpc() waits a second when something says with no number when to try again', async () => {
  const cameMs: number[] = [];
  await using service = await startGrpcReports((_call, done) => {
    cameMs.push(performance.now());
    const metadata = new Metadata();
    metadata.set('grpc-retry-pushback-ms', 'later');
    if (cameMs.length > 1) done(null, Buffer.from([8, 1]));
    else done({ code: status.UNAVAILABLE, details: 'the reason', metadata });
  });
  const client = connectGrpc(service.address);
  client.report(EVENT);
  await waitUntil(() => client.stats().accepted === 1);
  assert.ok(cameMs[1]! - cameMs[0]! >= 990, `after ${cameMs[1]! - cameMs[0]!} ms`);
  await client.close();
});

async function startGrpcReports(take: (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) => void) {
  const server = new Server();
  const reportBatch = {
    path: '/observation.v1.ObservationService/ReportBatch',
    requestStream: false,
    responseStream: false,
    requestSerialize: (bytes: Buffer) => bytes,
    requestDeserialize: (bytes: Buffer) => bytes,
    responseSerialize: (bytes: Buffer) => bytes,
    responseDeserialize: (bytes: Buffer) => bytes,
  } as const;
  server.addService({ reportBatch }, { reportBatch: take });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  return { address: `127.0.0.1:${port}`, [Symbol.asyncDispose]: async () => server.forceShutdown() };
}
