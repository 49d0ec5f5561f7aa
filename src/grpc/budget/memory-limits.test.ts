/** What clients can make the transport keep is bounded, and calls that are refused for it do not disturb others. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { FlowClient } from '../../../test/support/flow-client.ts';
import { ECHO_PATH, echoMethods, HELLO, SERVICE, startGrpcServer } from '../../../test/support/grpc-server.ts';
import { block, DATA, frame, frameMessage, HEADERS, RST, SETTINGS } from '../../../test/support/http2-frames.ts';
import { Failure } from '../../errors.ts';
import type { GrpcMethod } from '../call/service.ts';
import { encodeHeaderBlock } from '../http2/header-block.ts';

const MEBIBYTE = 1_048_576;
const MESSAGE_BYTES = 4 * MEBIBYTE;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

let streamed = 0;
let readOnce = 0;
const methods: readonly GrpcMethod[] = [
  ...echoMethods,
  { kind: 'unary', name: 'Grow', handle: () => Buffer.alloc(3 * MEBIBYTE, 'x') },
  { kind: 'unary', name: 'Count', handle: (request) => Buffer.from(String(request.length)) },
  { kind: 'unary', name: 'Refuse', handle: (request) => request, check: refuse },
  { kind: 'client-stream', name: 'Ignore', handle: () => new Promise(() => {}) },
  {
    kind: 'client-stream',
    name: 'ReadOne',
    async handle(requests) {
      await requests[Symbol.asyncIterator]().next();
      readOnce += 1;
      return await new Promise(() => {});
    },
  },
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

function refuse(): undefined {
  throw new Failure('unauthenticated', 'Cannot answer: the call needs a token');
}

function open(streamId: number, method: string, encoding?: string, timeout = '1H'): Buffer {
  const path = `/${SERVICE}/${method}`;
  if (encoding === undefined) return frame(HEADERS, 4, streamId, block(path));
  const head = encodeHeaderBlock([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
    ['grpc-encoding', encoding],
    ['grpc-timeout', timeout],
  ]);
  return frame(HEADERS, 4, streamId, head);
}

/** By how much the largest memory of the process so far grows meanwhile. */
async function measureGrowth(attack: () => Promise<void>): Promise<number> {
  const before = process.resourceUsage().maxRSS;
  await attack();
  return (process.resourceUsage().maxRSS - before) / 1024;
}

/** In MiB, without garbage: the second collection waits for what the first frees in another thread. */
async function measureArrayBuffers(): Promise<number> {
  for (let round = 0; round < 2; round++) {
    collectGarbage();
    await setImmediate();
  }
  return process.memoryUsage().arrayBuffers / MEBIBYTE;
}

async function checkOthersAreAnswered(): Promise<void> {
  assert.equal(String(await running.client.unary(ECHO_PATH, HELLO)), 'hello');
}

test('a caller who may not call is refused before any of the request is there', async () => {
  const client = await FlowClient.connect(port);
  client.send(open(1, 'Refuse', 'gzip'));
  await client.untilEnded(1);
  assert.match(String(client.endOf(1)?.payload), /grpc-status.16/s);
  client.socket.destroy();
});

test('compressed messages of calls that ended are not expanded', async () => {
  const bomb = frameMessage(gzipSync(Buffer.alloc(MESSAGE_BYTES)), 1);
  const client = await FlowClient.connect(port);
  const growth = await measureGrowth(async () => {
    for (let index = 0; index < 3000; index++) {
      client.send(open(2 * index + 1, 'Later', 'gzip'));
      await client.sendData(2 * index + 1, bomb);
      client.send(frame(RST, 0, 2 * index + 1, Buffer.from('00000008', 'hex')));
    }
    await client.settle();
    await checkOthersAreAnswered();
  });
  assert.equal(client.goAwayCode, undefined);
  assert.ok(growth < 250, `${growth} MiB`);
  client.socket.destroy();
});

test('messages that wait to be expanded are not kept when their deadline has passed', async () => {
  const bomb = frameMessage(gzipSync(Buffer.alloc(MESSAGE_BYTES)), 1);
  const blockers = await Promise.all(Array.from({ length: 60 }, () => FlowClient.connect(port)));
  for (const blocker of blockers) blocker.send(open(1, 'Count', 'gzip'), frame(DATA, 1, 1, bomb));
  const client = await FlowClient.connect(port);
  const late = frameMessage(gzipSync(randomBytes(60_000)), 1);
  const before = await measureArrayBuffers();
  for (let round = 0; round < 100; round++) {
    const ids = Array.from({ length: 20 }, (_, index) => 40 * round + 2 * index + 1);
    for (const id of ids) {
      client.send(open(id, 'EchoAll', 'gzip', '1m'));
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
    client.send(open(2 * call + 1, 'ReadOne', 'gzip'));
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
  const ids = Array.from({ length: 300 }, (_, index) => 2 * index + 1);
  const growth = await measureGrowth(async () => {
    for (const id of ids) {
      client.send(open(id, 'Never', 'gzip'));
      await client.sendData(id, bomb);
    }
    await client.settle();
    await checkOthersAreAnswered();
  });
  assert.ok(growth < 250, `${growth} MiB`);
  client.socket.destroy();
});

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
  await checkOthersAreAnswered();
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

test('answers that wait for a window are few, and all arrive once it opens', async () => {
  const client = await FlowClient.connect(port);
  const ids = Array.from({ length: 200 }, (_, index) => 2 * index + 1);
  const growth = await measureGrowth(async () => {
    client.send(frame(SETTINGS, 0, 0, Buffer.from('000400000000', 'hex')));
    for (const id of ids) client.send(open(id, 'Grow'), frame(DATA, 1, id, frameMessage(HELLO)));
    await client.settle();
    await checkOthersAreAnswered();
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
  // 400 MB of answers, of which sockets take a few.
  assert.ok(streamed > 0 && streamed < 1000, `${streamed} answers`);
  client.socket.destroy();
  other.socket.destroy();
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
  for (const { payload } of shed) assert.match(String(payload), /grpc-status.8/s);
  modest.send(frame(DATA, 1, 1, hello.subarray(6)));
  await modest.untilEnded(1);
  assert.match(String(modest.endOf(1)?.payload), /grpc-status.0/s);
  for (const client of [modest, ...greedy]) client.socket.destroy();
});
