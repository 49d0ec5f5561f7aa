import assert from 'node:assert/strict';
import { test } from 'node:test';
import { status } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { measureHeapOf } from '../../../test/support/basics/memory-growth.ts';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { serialize } from '../../../test/support/grpc/grpc-client.ts';
import { echo, SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import { block, DATA, frame, frameMessage, HEADERS } from '../../../test/support/grpc/http2-frames.ts';
import { encodeHeaderBlock } from '../hpack/hpack-encoder.ts';

const health = protobuf.loadSync('proto/grpc/health/v1/health.proto');
const healthRequest = health.lookupType('grpc.health.v1.HealthCheckRequest');
const healthResponse = health.lookupType('grpc.health.v1.HealthCheckResponse');
const healthList = health.lookupType('grpc.health.v1.HealthListResponse');

function askHealth(service: string): Buffer {
  return Buffer.from(healthRequest.encode({ service }).finish());
}

function readHealth(bytes: Uint8Array): string {
  return healthResponse.toObject(healthResponse.decode(bytes), { enums: String, defaults: true }).status;
}

test('health says whether the server and each service serve', async () => {
  await using running = await startGrpcServer([echo]);
  const check = async (service: string) =>
    readHealth(await running.client.unary('/grpc.health.v1.Health/Check', askHealth(service)));
  assert.equal(await check(''), 'NOT_SERVING');
  running.server.setServing(true);
  assert.equal(await check(''), 'SERVING');
  assert.equal(await check(SERVICE), 'SERVING');
  await assert.rejects(check('no.such.Service'), { code: status.NOT_FOUND });
  const list = await running.client.unary('/grpc.health.v1.Health/List', Buffer.alloc(0));
  assert.deepEqual(healthList.toObject(healthList.decode(list), { enums: String }), {
    statuses: { '': { status: 'SERVING' }, [SERVICE]: { status: 'SERVING' } },
  });
});

test('a health watch tells each change, and a drain ends it', async () => {
  await using running = await startGrpcServer([echo]);
  running.server.setServing(true);
  const call = running.client.client.makeServerStreamRequest(
    '/grpc.health.v1.Health/Watch',
    serialize,
    readHealth,
    askHealth(SERVICE),
  );
  const sent: string[] = [];
  for await (const state of call) {
    sent.push(state);
    if (sent.length === 1) running.server.setServing(false);
    if (sent.length === 2) running.server.setServing(true);
    if (sent.length === 3) void running.server.drain(60_000);
  }
  assert.deepEqual(sent.slice(0, 3), ['SERVING', 'NOT_SERVING', 'SERVING']);
});

test('a health watch of an unknown service answers SERVICE_UNKNOWN and stays', async () => {
  await using running = await startGrpcServer([echo]);
  const call = running.client.client.makeServerStreamRequest(
    '/grpc.health.v1.Health/Watch',
    serialize,
    readHealth,
    askHealth('no.such.Service'),
  );
  call.on('error', () => {});
  const [first] = await call.take(1).toArray();
  assert.equal(first, 'SERVICE_UNKNOWN');
});

const WATCHES = 1000;
/** With a generator, its promises and a signal, each took 4,800. */
const MAX_BYTES_PER_WATCH = 2600;

const WATCH = block('/grpc.health.v1.Health/Watch');
/** Names that no method reads, five bytes each on the wire. */
const fields = Array.from({ length: 900 }, (_, index) => [index.toString(36), ''] as const);

for (const [title, head] of [
  ['a health watch', WATCH],
  ['a health watch with 900 headers', Buffer.concat([WATCH, encodeHeaderBlock(fields)])],
] as const)
  test(`${title} that waits keeps little memory`, async () => {
    await using running = await startGrpcServer([echo]);
    const open = async (): Promise<FlowClient> => {
      const client = await FlowClient.connect(running.server.port);
      for (let id = 1; id < 2 * WATCHES; id += 2)
        client.send(frame(HEADERS, 4, id, head), frame(DATA, 1, id, frameMessage(askHealth(''))));
      await client.settle();
      assert.equal(client.frames.filter(({ type }) => type === DATA).length, WATCHES);
      client.frames.length = 0;
      return client;
    };
    const [kept, ...clients] = await measureHeapOf(open);
    const bytes = kept / WATCHES;
    assert.ok(bytes < MAX_BYTES_PER_WATCH, `${bytes} bytes a watch`);
    for (const { socket } of clients) socket.destroy();
  });
