/** Few of the answers that a client does not read are in memory, and all arrive once it reads them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import { MEBIBYTE, measureArrayBuffers, measureGrowth } from '../../../test/support/basics/memory-growth.ts';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import {
  checkOthersAreAnswered,
  echoMethods,
  HELLO,
  SERVICE,
  startGrpcServer,
} from '../../../test/support/grpc/grpc-server.ts';
import {
  BEGINNING,
  block,
  DATA,
  frame,
  frameMessage,
  GOAWAY,
  HEADERS,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../../test/support/grpc/http2-frames.ts';
import type { GrpcMethod } from '../call/service.ts';
import { encodeHeaderBlock } from '../hpack/hpack-encoder.ts';

const MESSAGE_BYTES = 4 * MEBIBYTE;
const NO_GRPC = encodeHeaderBlock([
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/'],
  ['content-type', 'text/plain'],
]);

let streamed = 0;
const methods: readonly GrpcMethod[] = [
  ...echoMethods,
  { kind: 'unary', name: 'Grow', handle: () => Buffer.alloc(3 * MEBIBYTE, 'x') },
  /** More than the kernel takes for a connection on both sides. */
  { kind: 'unary', name: 'GrowMost', handle: () => Buffer.alloc(24 * MEBIBYTE, 'x') },
  {
    kind: 'stream',
    name: 'GrowAll',
    async *handle(requests) {
      for await (const _ of requests) {
        streamed += 1;
        yield Buffer.alloc(100_000, 'x');
      }
    },
  },
];
const running = await startGrpcServer(methods, { maxMessageBytes: MESSAGE_BYTES });
const { port } = running.server;
after(() => running[Symbol.asyncDispose]());

function open(streamId: number, method: string): Buffer {
  return frame(HEADERS, 4, streamId, block(`/${SERVICE}/${method}`));
}

test('answers that wait for a window are few, and all arrive once it opens', async () => {
  const client = await FlowClient.connect(port);
  const ids = Array.from({ length: 200 }, (_, index) => 2 * index + 1);
  const growth = await measureGrowth(async () => {
    client.send(frame(SETTINGS, 0, 0, Buffer.from('000400000000', 'hex')));
    for (const id of ids) client.send(open(id, 'Grow'), frame(DATA, 1, id, frameMessage(HELLO)));
    await client.settle();
    await checkOthersAreAnswered(running);
  });
  assert.ok(growth < 200, `${growth} MiB`);
  assert.ok(!client.frames.some(({ type }) => type === DATA));
  let received = 0;
  client.socket.on('data', (chunk: Buffer) => {
    received += chunk.length;
  });
  client.send(
    frame(8, 0, 0, Buffer.from('7fff0000', 'hex')),
    frame(SETTINGS, 0, 0, Buffer.from('00043fffffff', 'hex')),
  );
  await client.untilEnded(...ids.slice(0, 20));
  for (const id of ids.slice(0, 20)) assert.match(String(client.endOf(id)?.payload), /grpc-status.0/s);
  assert.ok(received > 20 * 3 * MEBIBYTE);
  client.socket.destroy();
});

test('answers that wait are counted by the memory that they hold, which is more than their length', async () => {
  // Five answers of 3 MiB would fit. Their blocks of 4 MiB do not.
  const bufferBytes = 16 * MEBIBYTE;
  await using small = await startGrpcServer(methods, { maxMessageBytes: MESSAGE_BYTES, bufferBytes });
  const clients = await Promise.all(Array.from({ length: 5 }, () => FlowClient.connect(small.server.port)));
  for (const client of clients) {
    client.send(frame(SETTINGS, 0, 0, Buffer.from('000400000000', 'hex')));
    client.send(open(1, 'Grow'), frame(DATA, 1, 1, frameMessage(HELLO)));
    await client.settle();
  }
  await Promise.all(clients.map((client) => client.settle()));
  const ended = clients.filter((client) => client.endOf(1) !== undefined);
  assert.equal(ended.length, 2);
  for (const client of ended) assert.match(String(client.endOf(1)?.payload), /grpc-status.8/s);
  for (const { socket } of clients) socket.destroy();
});

/** A thousand requests that are not gRPC, from a client that opens no window. */
async function refuseAtNoWindow(to: number, flags: number): Promise<{ client: FlowClient; endedIds: number[] }> {
  const client = await FlowClient.connect(to);
  client.send(frame(SETTINGS, 0, 0, Buffer.from('000400000000', 'hex')));
  const ids = Array.from({ length: 1000 }, (_, index) => 2 * index + 1);
  for (const id of ids) client.send(frame(HEADERS, flags, id, NO_GRPC));
  await client.settle();
  return { client, endedIds: ids.filter((id) => client.endOf(id) !== undefined) };
}

test('of requests that are no gRPC and do not end, the newest 256 of all connections are kept', async () => {
  await using other = await startGrpcServer(methods);
  const first = await refuseAtNoWindow(other.server.port, 4);
  assert.equal(first.endedIds.at(-1), 1487);
  const second = await FlowClient.connect(other.server.port);
  second.send(frame(HEADERS, 4, 1, NO_GRPC));
  await second.settle();
  await first.client.settle();
  assert.equal(second.endOf(1), undefined);
  assert.notEqual(first.client.endOf(1489), undefined);
  assert.equal(first.client.endOf(1491), undefined);
  for (const { socket } of [first.client, second]) socket.destroy();
});

test('requests that are no gRPC and do not end give way like other calls', async () => {
  await using small = await startGrpcServer(methods, { bufferBytes: MEBIBYTE / 4 });
  const { client, endedIds } = await refuseAtNoWindow(small.server.port, 4);
  await checkOthersAreAnswered(small);
  // Without the budget, 744 calls stop, and a few of these wait for a window.
  assert.ok(endedIds.length > 760, `${endedIds.length} refusals ended`);
  client.socket.destroy();
});

test('few reasons of refusals wait for a window: further refusals end without one', async () => {
  const { client, endedIds } = await refuseAtNoWindow(port, 5);
  assert.ok(endedIds.length > 900 && endedIds.length < 1000, `${endedIds.length} ended`);
  assert.equal(client.endOf(1), undefined);
  client.send(frame(WINDOW_UPDATE, 0, 1, Buffer.from('00001000', 'hex')));
  await client.settle();
  const reason = client.frames.find(({ type, streamId }) => type === DATA && streamId === 1);
  assert.match(String(reason?.payload), /content-type must be application\/grpc/);
  client.socket.destroy();
});

/** A client that opens all windows and reads nothing. */
async function connectUnread(to: number): Promise<FlowClient> {
  const client = await FlowClient.connect(to);
  client.send(
    frame(SETTINGS, 0, 0, Buffer.from('00043fffffff', 'hex')),
    frame(WINDOW_UPDATE, 0, 0, Buffer.from('3fffffff', 'hex')),
  );
  await client.settle();
  client.socket.pause();
  return client;
}

test('a client that leaves more answers unread than there is memory loses its connection', async () => {
  await using small = await startGrpcServer(methods, { bufferBytes: 8 * MEBIBYTE });
  const client = await connectUnread(small.server.port);
  client.send(open(1, 'GrowMost'), frame(DATA, 1, 1, frameMessage(HELLO)));
  await checkOthersAreAnswered(small);
  client.socket.resume();
  await client.closed;
  await checkOthersAreAnswered(small);
});

test('a client that goes away is answered no more calls', async () => {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {});
  const closed = once(socket, 'close');
  for (const part of BEGINNING) socket.write(part);
  socket.write(frame(SETTINGS, 0, 0, Buffer.from('00043fffffff', 'hex')));
  socket.write(frame(WINDOW_UPDATE, 0, 0, Buffer.from('3fffffff', 'hex')));
  const call = (id: number) => socket.write(Buffer.concat([open(id, 'Grow'), frame(DATA, 1, id, frameMessage(HELLO))]));
  call(1);
  socket.write(frame(GOAWAY, 0, 0, Buffer.alloc(8)));
  socket.resume();
  await once(socket, 'end');
  const before = await measureArrayBuffers();
  for (let index = 1; index <= 100; index++) {
    call(2 * index + 1);
    await checkOthersAreAnswered(running);
  }
  const kept = (await measureArrayBuffers()) - before;
  assert.ok(kept < 10, `${kept} MiB`);
  socket.destroy();
  await closed;
});

test('a streaming method is not asked for more answers than a client reads', async () => {
  streamed = 0;
  const client = await FlowClient.connect(port);
  client.send(
    frame(SETTINGS, 0, 0, Buffer.from('00043fffffff', 'hex')),
    frame(8, 0, 0, Buffer.from('3fffffff', 'hex')),
  );
  client.socket.pause();
  client.send(open(1, 'GrowAll'));
  client.sendAllowed(1, Buffer.concat(Array.from({ length: 4000 }, () => frameMessage(HELLO))), false);
  const other = await FlowClient.connect(port);
  for (let round = 0; round < 200; round++) await other.settle();
  // 400 MB of answers, of which the sockets take a few MB.
  assert.ok(streamed > 0 && streamed < 1000, `${streamed} answers`);
  client.socket.destroy();
  other.socket.destroy();
});
