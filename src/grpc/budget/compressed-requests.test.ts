/** Few compressed messages are expanded at a time, and none for a call that may not be answered or has ended. */
import assert from 'node:assert/strict';
import { createHook } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { after, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { MEBIBYTE, measureArrayBuffers, measureGrowth } from '../../../test/support/basics/memory-growth.ts';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import {
  checkOthersAreAnswered,
  clientStream,
  echoMethods,
  SERVICE,
  startGrpcServer,
} from '../../../test/support/grpc/grpc-server.ts';
import { DATA, frame, frameMessage, HEADERS, RST } from '../../../test/support/grpc/http2-frames.ts';
import { Failure } from '../../errors.ts';
import type { GrpcMethod } from '../call/service.ts';
import { encodeHeaderBlock } from '../hpack/hpack-encoder.ts';

const MESSAGE_BYTES = 4 * MEBIBYTE;

let readOnce = 0;
const methods: readonly GrpcMethod[] = [
  ...echoMethods,
  { kind: 'unary', name: 'Count', handle: (request) => Buffer.from(String(request.length)) },
  { kind: 'unary', name: 'Refuse', handle: (request) => request, check: refuse },
  clientStream('Forget', () => ({})),
  clientStream('ReadOne', () => {
    let hasRoom = true;
    const take = (): void => {
      hasRoom = false;
      readOnce += 1;
    };
    return { reserve: () => hasRoom, take };
  }),
];
const running = await startGrpcServer(methods, { maxMessageBytes: MESSAGE_BYTES });
const { port } = running.server;
after(() => running[Symbol.asyncDispose]());

function refuse(): undefined {
  throw new Failure('unauthenticated', 'Cannot answer: the call needs a token');
}

/** The head of a call whose messages are compressed with gzip. */
function open(streamId: number, method: string, timeout = '1H'): Buffer {
  const head = encodeHeaderBlock([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', `/${SERVICE}/${method}`],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
    ['grpc-encoding', 'gzip'],
    ['grpc-timeout', timeout],
  ]);
  return frame(HEADERS, 4, streamId, head);
}

test('a caller who may not call is refused before any of the request is there', async () => {
  const client = await FlowClient.connect(port);
  client.send(open(1, 'Refuse'));
  await client.untilEnded(1);
  assert.match(String(client.endOf(1)?.payload), /grpc-status.16/s);
  client.socket.destroy();
});

/** Counts the messages that this process begins to expand. */
function countExpansions(t: TestContext): () => number {
  let count = 0;
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'ZLIB') count += 1;
    },
  }).enable();
  t.after(() => hook.disable());
  return () => count;
}

test('compressed messages of calls that ended are not expanded', async (t) => {
  const bomb = frameMessage(gzipSync(Buffer.alloc(MESSAGE_BYTES)), 1);
  const client = await FlowClient.connect(port);
  const ids = Array.from({ length: 100 }, (_, index) => 2 * index + 1);
  const expansions = countExpansions(t);
  for (const id of ids) {
    client.send(open(id, 'Forget'));
    await client.sendData(id, bomb);
  }
  await client.settle();
  client.send(...ids.map((id) => frame(RST, 0, id, Buffer.from('00000008', 'hex'))));
  await client.settle();
  const before = expansions();
  // Messages of one connection are expanded one after the other.
  client.send(open(1001, 'Count'));
  await client.sendData(1001, bomb);
  await client.untilEnded(1001);
  assert.match(String(client.endOf(1001)?.payload), /grpc-status.0/s);
  // This message, and at most one whose call ended while it was expanded as a small message.
  assert.ok(expansions() - before <= 2, `${expansions() - before} of ${ids.length}`);
  client.socket.destroy();
});

test('messages that wait to be expanded are not kept when their deadline has passed', async () => {
  const bomb = frameMessage(gzipSync(Buffer.alloc(MESSAGE_BYTES)), 1);
  const blockers = await Promise.all(Array.from({ length: 60 }, () => FlowClient.connect(port)));
  for (const blocker of blockers) blocker.send(open(1, 'Count'), frame(DATA, 1, 1, bomb));
  const client = await FlowClient.connect(port);
  const late = frameMessage(gzipSync(randomBytes(60_000)), 1);
  const before = await measureArrayBuffers();
  for (let round = 0; round < 100; round++) {
    const ids = Array.from({ length: 20 }, (_, index) => 40 * round + 2 * index + 1);
    for (const id of ids) {
      client.send(open(id, 'EchoAll', '1m'));
      await client.sendData(id, late);
    }
    await client.untilEnded(...ids);
  }
  const kept = (await measureArrayBuffers()) - before;
  assert.ok(kept < 60, `${kept} MiB`);
  for (const { socket } of [...blockers, client]) socket.destroy();
});

test('a call that goes on does not keep the message that was expanded for it', async () => {
  const bomb = frameMessage(gzipSync(Buffer.alloc(MESSAGE_BYTES)), 1);
  const client = await FlowClient.connect(port);
  const before = await measureArrayBuffers();
  for (let call = 0; call < 40; call++) {
    client.send(open(2 * call + 1, 'ReadOne'));
    await client.sendData(2 * call + 1, bomb, false);
  }
  while (readOnce < 40) await setImmediate();
  const kept = (await measureArrayBuffers()) - before;
  assert.ok(kept < 40, `${kept} MiB`);
  client.socket.destroy();
});

test('many compressed messages at once are expanded a few at a time', async () => {
  const bomb = frameMessage(gzipSync(Buffer.alloc(MESSAGE_BYTES)), 1);
  const client = await FlowClient.connect(port);
  const ids = Array.from({ length: 100 }, (_, index) => 2 * index + 1);
  const growth = await measureGrowth(async () => {
    for (const id of ids) {
      client.send(open(id, 'Count'));
      await client.sendData(id, bomb);
    }
    await checkOthersAreAnswered(running);
    await client.untilEnded(...ids);
  });
  for (const id of ids) assert.match(String(client.endOf(id)?.payload), /grpc-status.0/s);
  assert.ok(growth < 150, `${growth} MiB`);
  client.socket.destroy();
});
