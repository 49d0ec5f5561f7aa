/** The bytes of requests that clients can make the transport keep are bounded, and calls refused for this do not disturb others. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { MEBIBYTE, measureArrayBuffers } from '../../../test/support/basics/memory-growth.ts';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import {
  checkOthersAreAnswered,
  clientStream,
  echoMethods,
  HELLO,
  SERVICE,
  startGrpcServer,
} from '../../../test/support/grpc/grpc-server.ts';
import { block, DATA, frame, frameMessage, HEADERS, RST, SETTINGS } from '../../../test/support/grpc/http2-frames.ts';
import type { GrpcMethod } from '../call/service.ts';

const MESSAGE_BYTES = 4 * MEBIBYTE;

const methods: readonly GrpcMethod[] = [...echoMethods, clientStream('Ignore', () => ({ reserve: () => false }))];
const running = await startGrpcServer(methods, { maxMessageBytes: MESSAGE_BYTES });
const { port } = running.server;
after(() => running[Symbol.asyncDispose]());

function open(streamId: number, method: string): Buffer {
  return frame(HEADERS, 4, streamId, block(`/${SERVICE}/${method}`));
}

test('what a client may send of messages that it does not finish is bounded', async () => {
  const client = await FlowClient.connect(port);
  const head = frameMessage(Buffer.alloc(MESSAGE_BYTES)).subarray(0, -1);
  const rests = new Map(Array.from({ length: 100 }, (_, index) => [2 * index + 1, head]));
  for (const id of rests.keys()) client.send(open(id, 'Echo'));
  let sent = 0;
  for (let round = 0; round < 20; round++) {
    for (const [id, rest] of rests) {
      const left = client.sendAllowed(id, rest, false);
      sent += rest.length - left.length;
      rests.set(id, left);
    }
    await client.settle();
  }
  assert.ok(sent < 64 * MEBIBYTE, `${sent} bytes were taken`);
  await checkOthersAreAnswered(running);
  client.socket.destroy();
});

test('large messages that are sent at once all arrive, each in its turn', async () => {
  const client = await FlowClient.connect(port);
  client.send(
    frame(SETTINGS, 0, 0, Buffer.from('00043fffffff', 'hex')),
    frame(8, 0, 0, Buffer.from('3fffffff', 'hex')),
  );
  const ids = Array.from({ length: 12 }, (_, index) => 2 * index + 1);
  for (const id of ids) client.send(open(id, id % 4 === 1 ? 'Echo' : 'EchoAll'));
  const message = frameMessage(Buffer.alloc(MESSAGE_BYTES, 'm'));
  await Promise.all(ids.map((id) => client.sendData(id, message)));
  await client.untilEnded(...ids);
  for (const id of ids) {
    const answer = client.frames.filter(({ type, streamId }) => type === DATA && streamId === id);
    assert.ok(Buffer.concat(answer.map(({ payload }) => payload)).equals(message), `answer ${id}`);
  }
  client.socket.destroy();
});

test('a message as large as a window, cut anywhere, arrives', async () => {
  const client = await FlowClient.connect(port);
  for (const [index, bytes] of [262_138, 262_139, 262_140, 262_144, 262_150, 327_680].entries()) {
    const [id, other] = [4 * index + 1, 4 * index + 3];
    const message = frameMessage(Buffer.alloc(bytes, 'm'));
    client.send(open(id, 'Later'), open(other, 'EchoAll'), frame(SETTINGS, 0, 0, Buffer.from('00043fffffff', 'hex')));
    client.send(frame(8, 0, 0, Buffer.from('00ffffff', 'hex')));
    await client.sendData(id, message.subarray(0, 3), false);
    await client.sendData(id, message.subarray(3));
    await client.sendData(other, frameMessage(Buffer.alloc(50_000)), false);
    await client.sendData(other, message);
    await client.untilEnded(id, other);
    assert.equal(client.endOf(id)?.type, HEADERS);
    assert.match(String(client.endOf(id)?.payload), /grpc-status.0/s);
    assert.match(String(client.endOf(other)?.payload), /grpc-status.0/s);
  }
  client.socket.destroy();
});

test('a few bytes of a message do not keep what was read with them', async () => {
  const client = await FlowClient.connect(port);
  client.send(open(1, 'Echo'));
  const piece = Buffer.alloc(1 + 1 + 255);
  piece[0] = 255;
  await client.sendData(1, frameMessage(Buffer.alloc(200_000)).subarray(0, 5), false);
  const before = await measureArrayBuffers();
  // Frames of one byte and 255 of padding: 25 MB are read for 100,000 bytes that are kept.
  const pieces = Array.from({ length: 200 }, () => frame(DATA, 8, 1, piece));
  for (let round = 0; round < 500; round++) {
    client.send(...pieces);
    await client.settle();
  }
  const kept = (await measureArrayBuffers()) - before;
  assert.equal(client.goAwayCode, undefined);
  assert.ok(kept < 8, `${kept} MiB are kept`);
  client.socket.destroy();
});

test('room for a message is free again when the message is dropped as it gets it', async () => {
  await using small = await startGrpcServer(methods, { maxMessageBytes: MEBIBYTE, bufferBytes: 5.5 * MEBIBYTE });
  const client = await FlowClient.connect(small.server.port);
  const send = (id: number, bytes: number, sent: number) =>
    client.sendAllowed(id, frameMessage(Buffer.alloc(bytes)).subarray(0, sent), false);
  const [largest = 0, first = 0, second = 0, ...others] = Array.from({ length: 319 }, (_, index) => 2 * index + 1);
  for (const id of [largest, first, second, ...others]) client.send(open(id, 'Echo'));
  // They leave 64 KiB of the window of the connection, and the rest of the message would take more.
  for (const id of others) send(id, 20_000, 13_064);
  await client.settle();
  send(largest, 277_139, 16_384);
  await client.untilEnded(largest);
  assert.match(String(client.endOf(largest)?.payload), /grpc-status.8/s);
  for (const id of others) client.send(frame(RST, 0, id, Buffer.from('00000008', 'hex')));
  await client.settle();
  // Together they take all the memory that large messages of one connection may have.
  for (const id of [first, second]) send(id, 982_000, 100);
  await client.settle();
  for (const id of [first, second]) assert.ok(client.windowOf(id) > 900_000, `${client.windowOf(id)} bytes`);
  client.socket.destroy();
});

test('when all connections together keep too much, the one that keeps most pays for it', async () => {
  await using small = await startGrpcServer(methods, { maxMessageBytes: MEBIBYTE, bufferBytes: 8 * MEBIBYTE });
  const modest = await FlowClient.connect(small.server.port);
  const hello = frameMessage(HELLO);
  modest.send(open(1, 'Echo'), frame(DATA, 0, 1, hello.subarray(0, 6)));
  await modest.settle();
  const greedy = await Promise.all(Array.from({ length: 8 }, () => FlowClient.connect(small.server.port)));
  for (const client of greedy)
    for (let id = 1; id < 60; id += 2) {
      client.send(open(id, 'Ignore'));
      client.sendAllowed(id, frameMessage(Buffer.alloc(200_000)), false);
    }
  await Promise.all(greedy.map((client) => client.settle()));
  const shed = greedy.flatMap((client) =>
    client.frames.filter(({ type, flags }) => type === HEADERS && (flags & 1) === 1),
  );
  assert.ok(shed.length > 0);
  // The pushback time distinguishes them from calls whose message is too large.
  for (const { payload } of shed) assert.match(String(payload), /grpc-status.8.*grpc-retry-pushback-ms.1000/s);
  modest.send(frame(DATA, 1, 1, hello.subarray(6)));
  await modest.untilEnded(1);
  assert.match(String(modest.endOf(1)?.payload), /grpc-status.0/s);
  for (const client of [modest, ...greedy]) client.socket.destroy();
});
