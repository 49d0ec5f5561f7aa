/** The transport takes memory back from an attacker who keeps it, not from clients that keep a little for a moment. */
import assert from 'node:assert/strict';
import { afterEach, mock, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import {
  checkOthersAreAnswered,
  clientStream,
  echoMethods,
  HELLO,
  SERVICE,
  startGrpcServer,
} from '../../../test/support/grpc/grpc-server.ts';
import {
  block,
  CONTINUATION,
  DATA,
  frame,
  frameMessage,
  HEADERS,
  RST,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../../test/support/grpc/http2-frames.ts';
import { realWorld } from '../../world.ts';
import type { GrpcMethod } from '../call/service.ts';
import { encodeHeaderBlock } from '../hpack/hpack-encoder.ts';

const MEBIBYTE = 1_048_576;
const LIMITS = { maxMessageBytes: 4 * MEBIBYTE };

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

afterEach(() => mock.timers.reset());

const methods: readonly GrpcMethod[] = [
  ...echoMethods,
  { kind: 'unary', name: 'Grow', handle: () => Buffer.alloc(3 * MEBIBYTE, 'x') },
  { kind: 'unary', name: 'Count', handle: (request) => Buffer.from(String(request.length)) },
  clientStream('Ignore', () => ({ reserve: () => false })),
];

function open(streamId: number, method: string): Buffer {
  return frame(HEADERS, 4, streamId, block(`/${SERVICE}/${method}`));
}

function odd(count: number, from = 1): number[] {
  return Array.from({ length: count }, (_, index) => from + 2 * index);
}

async function measureArrayBuffers(): Promise<number> {
  for (let round = 0; round < 2; round++) {
    collectGarbage();
    await setImmediate();
  }
  return process.memoryUsage().arrayBuffers / MEBIBYTE;
}

function assertAnswered(client: FlowClient, streamId: number): void {
  assert.equal(client.endOf(streamId)?.type, HEADERS);
  assert.match(String(client.endOf(streamId)?.payload), /grpc-status.0/s);
}

test('calls that wait behind unread answers keep nothing once they are reset', async () => {
  await using running = await startGrpcServer(methods, LIMITS);
  const client = await FlowClient.connect(running.server.port);
  client.send(frame(SETTINGS, 0, 0, Buffer.from('000400000000', 'hex')));
  for (const id of [1, 3]) client.send(open(id, 'Grow'), frame(DATA, 1, id, frameMessage(HELLO)));
  await client.settle();
  const message = frameMessage(Buffer.alloc(60_000));
  const before = await measureArrayBuffers();
  for (const id of odd(1000, 5)) {
    client.send(open(id, 'Echo'));
    await client.sendData(id, message);
    client.send(frame(RST, 0, id, Buffer.alloc(4)));
    if (id % 100 === 1) await client.settle();
  }
  await client.settle();
  assert.equal(client.goAwayCode, undefined);
  const kept = (await measureArrayBuffers()) - before;
  assert.ok(kept < 16, `${kept} MiB are kept`);
  client.socket.destroy();
});

test('calls that wait for others at work start when these are done, also if nothing else happens', async () => {
  const finish = Promise.withResolvers<void>();
  const slow: GrpcMethod = { kind: 'unary', name: 'Slow', handle: () => finish.promise.then(() => HELLO) };
  await using running = await startGrpcServer([slow], LIMITS);
  const client = await FlowClient.connect(running.server.port);
  const ids = odd(200);
  for (const id of ids) {
    client.send(open(id, 'Slow'));
    await client.sendData(id, frameMessage(Buffer.alloc(40_000)));
    if (id % 20 === 1) await client.settle();
  }
  await client.settle();
  finish.resolve();
  await client.untilEnded(...ids);
  for (const id of ids) assertAnswered(client, id);
  client.socket.destroy();
});

for (const [who, address] of [
  ['another network', '127.0.0.9'],
  ['the same network', '127.0.0.1'],
] as const)
  test(`many connections that each keep a little for long pay for the memory, not one of ${who} that keeps more for a moment`, async () => {
    let nowMs = 0;
    const world = { ...realWorld, monotonicMs: () => nowMs };
    const limits = { maxMessageBytes: MEBIBYTE, bufferBytes: 4 * MEBIBYTE, world };
    await using running = await startGrpcServer(methods, limits);
    const { port } = running.server;
    const attackers = await Promise.all(Array.from({ length: 50 }, () => FlowClient.connect(port)));
    const part = frameMessage(Buffer.alloc(100_000)).subarray(0, 70_000);
    for (const attacker of attackers) {
      attacker.send(open(1, 'Echo'));
      await attacker.sendData(1, part, false);
    }
    await Promise.all(attackers.map((attacker) => attacker.settle()));
    nowMs = 30_000;
    const honest = await FlowClient.connect(port, address);
    const message = frameMessage(Buffer.alloc(200_000));
    honest.send(
      frame(SETTINGS, 0, 0, Buffer.from('00043fffffff', 'hex')),
      frame(WINDOW_UPDATE, 0, 0, Buffer.from('3fffffff', 'hex')),
    );
    const ids = odd(4);
    for (const id of ids) {
      honest.send(open(id, 'Echo'));
      await honest.sendData(id, message.subarray(0, 180_000), false);
    }
    await honest.settle();
    for (const attacker of attackers) {
      attacker.send(open(3, 'Echo'));
      await attacker.sendData(3, part, false);
    }
    await Promise.all(attackers.map((attacker) => attacker.settle()));
    for (const id of ids) await honest.sendData(id, message.subarray(180_000));
    await honest.untilEnded(...ids);
    for (const id of ids) assertAnswered(honest, id);
    assert.ok(attackers.some((attacker) => attacker.endOf(1) !== undefined));
    for (const client of [honest, ...attackers]) client.socket.destroy();
  });

test('calls that only wait count for the memory too, and those of who has most end', async () => {
  await using running = await startGrpcServer(methods, { maxMessageBytes: 100_000, bufferBytes: MEBIBYTE });
  const { port } = running.server;
  const honest = await FlowClient.connect(port, '127.0.0.9');
  honest.send(open(1, 'Ignore'));
  await honest.settle();
  const attackers = await Promise.all([FlowClient.connect(port), FlowClient.connect(port)]);
  for (const attacker of attackers) {
    for (const id of odd(500)) attacker.send(open(id, 'Echo'));
    await attacker.settle();
  }
  const ended = attackers.flatMap(({ frames }) => frames.filter(({ type, flags }) => type === HEADERS && flags === 5));
  assert.ok(ended.length > 0);
  for (const { payload } of ended) assert.match(String(payload), /grpc-status.8/s);
  await honest.settle();
  assert.equal(honest.endOf(1), undefined);
  for (const client of [honest, ...attackers]) client.socket.destroy();
});

test('the headers that a waiting call keeps count for the memory', async () => {
  await using running = await startGrpcServer(methods, { maxMessageBytes: 100_000, bufferBytes: MEBIBYTE });
  const client = await FlowClient.connect(running.server.port);
  const long = encodeHeaderBlock([['authorization', `Bearer ${'x'.repeat(12_000)}`]]);
  const head = Buffer.concat([block('/grpc.health.v1.Health/Watch'), long]);
  const ids = odd(200);
  for (const id of ids) client.send(frame(HEADERS, 4, id, head), frame(DATA, 1, id, frameMessage(Buffer.alloc(0))));
  await client.settle();
  const ended = ids.flatMap((id) => client.endOf(id) ?? []);
  assert.ok(ended.length > 100, `${ended.length} calls were ended`);
  for (const { payload } of ended) assert.match(String(payload), /grpc-status.8/s);
  client.socket.destroy();
});

test('header blocks that do not come to their end count for the memory, and others are answered', async () => {
  await using running = await startGrpcServer(methods, { maxMessageBytes: 100_000, bufferBytes: MEBIBYTE });
  const attackers = await Promise.all(Array.from({ length: 60 }, () => FlowClient.connect(running.server.port)));
  for (const attacker of attackers) {
    const parts = [frame(HEADERS, 0, 1, Buffer.alloc(16_000)), frame(CONTINUATION, 0, 1, Buffer.alloc(16_000))];
    attacker.send(...parts);
  }
  await waitUntil(() => attackers.filter(({ isClosed }) => isClosed).length > 20);
  await checkOthersAreAnswered(running);
  for (const { socket } of attackers) socket.destroy();
});

test('calls without a deadline whose message does not come to its end do', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  await using running = await startGrpcServer(methods, LIMITS);
  const client = await FlowClient.connect(running.server.port);
  const hello = frameMessage(HELLO);
  client.send(open(1, 'Echo'), open(3, 'Echo'), open(5, 'Echo'), open(7, 'EchoAll'), open(9, 'EchoAll'));
  client.send(
    frame(DATA, 0, 3, hello.subarray(0, 6)),
    frame(DATA, 0, 5, hello),
    frame(DATA, 0, 7, hello.subarray(0, 6)),
  );
  await client.settle();
  mock.timers.tick(59_000);
  await client.settle();
  const early = client.frames.filter(({ type }) => type === HEADERS);
  mock.timers.tick(1000);
  await client.settle();
  client.socket.destroy();
  assert.deepEqual(early, []);
  for (const id of [1, 3, 5, 7]) assert.match(String(client.endOf(id)?.payload), /grpc-status.4/s);
  // A stream may wait for its next message as long as it likes.
  assert.equal(client.endOf(9), undefined);
});

test('messages that are begun and not sent give their room to others within seconds, however many there are', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  await using running = await startGrpcServer(methods, LIMITS);
  const { port } = running.server;
  const begun = frameMessage(Buffer.alloc(4 * MEBIBYTE)).subarray(0, 5);
  const attackers = await Promise.all(Array.from({ length: 4 }, () => FlowClient.connect(port)));
  for (const attacker of attackers)
    for (const id of odd(20)) {
      attacker.send(open(id, 'Echo'));
      await attacker.sendData(id, begun, false);
    }
  await Promise.all(attackers.map((attacker) => attacker.settle()));
  const honest = await FlowClient.connect(port);
  honest.send(open(1, 'Count'));
  const sent = honest.sendData(1, frameMessage(Buffer.alloc(2 * MEBIBYTE)));
  await honest.settle();
  mock.timers.tick(5000);
  await sent;
  await honest.untilEnded(1);
  for (const client of [honest, ...attackers]) client.socket.destroy();
  assertAnswered(honest, 1);
});

test('compressed messages of many connections of one network do not delay those of another network', async () => {
  await using running = await startGrpcServer(methods, LIMITS);
  const { port } = running.server;
  const head = encodeHeaderBlock([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', `/${SERVICE}/Count`],
    ['content-type', 'application/grpc'],
    ['grpc-encoding', 'gzip'],
  ]);
  const call = [frame(HEADERS, 4, 1, head), frame(DATA, 1, 1, frameMessage(gzipSync(Buffer.alloc(4 * MEBIBYTE)), 1))];
  const crowd = await Promise.all(Array.from({ length: 40 }, () => FlowClient.connect(port, '127.0.0.66')));
  const honest = await FlowClient.connect(port);
  for (const client of crowd) client.send(...call);
  await Promise.all(crowd.map((client) => client.settle()));
  honest.send(...call);
  await honest.untilEnded(1);
  assertAnswered(honest, 1);
  const waiting = crowd.filter((client) => client.endOf(1) === undefined).length;
  assert.ok(waiting > 20, `${waiting} of the crowd still wait`);
  for (const client of [honest, ...crowd]) client.socket.destroy();
});
