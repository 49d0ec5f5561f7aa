import assert from 'node:assert/strict';
import { on, once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { connectRaw, serialize } from '../../../test/support/grpc/grpc-client.ts';
import {
  clientStream,
  ECHO_PATH,
  echoMethods,
  HELLO,
  SERVICE,
  startGrpcServer,
  unary,
} from '../../../test/support/grpc/grpc-server.ts';
import {
  BEGINNING,
  block,
  DATA,
  frame,
  frameMessage,
  GOAWAY,
  HEADERS,
  PING,
  RST,
  readFrames,
} from '../../../test/support/grpc/http2-frames.ts';
import type { GrpcMethod } from '../call/service.ts';

const END_HEADERS = 4;
const NO_ERROR = 0;
const REFUSED_STREAM = 7;

test('a drain ends streams early, so that what was taken is answered', async () => {
  const taken = Promise.withResolvers<void>();
  let count = 0;
  const take = (): void => {
    count += 1;
    if (count === 2) taken.resolve();
  };
  const method = clientStream('Join', () => ({ take, finish: async () => Buffer.from(String(count)) }));
  await using running = await startGrpcServer([method]);
  const answer = Promise.withResolvers<string>();
  const call = running.client.client.makeClientStreamRequest(
    `/${SERVICE}/Join`,
    serialize,
    (bytes) => bytes,
    (error, bytes) => (error === null ? answer.resolve(String(bytes)) : answer.reject(error)),
  );
  call.write(HELLO);
  call.write(HELLO);
  await taken.promise;
  await running.server.drain(60_000);
  assert.equal(await answer.promise, '2');
});

test('a drain waits for a call under way and refuses new ones', async () => {
  const started = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const method = unary(() => {
    started.resolve();
    return finish.promise.then(() => HELLO);
  });
  const late: GrpcMethod = {
    kind: 'unary',
    name: 'Late',
    handle: () => assert.fail('a call that began after the drain was handled'),
  };
  await using running = await startGrpcServer([method, late]);
  const answer = running.client.unary(ECHO_PATH, HELLO);
  const open = await FlowClient.connect(running.server.port);
  open.send(frame(HEADERS, END_HEADERS, 1, block(ECHO_PATH)));
  await open.settle();
  await started.promise;
  const drained = running.server.drain(60_000);
  // It answers the ping, after which the server takes no more calls.
  await open.until(() => open.frames.some(({ type, payload }) => type === PING && String(payload) === 'drainnow'));
  open.send(frame(PING, 1, 0, Buffer.from('drainnow')));
  open.send(frame(HEADERS, END_HEADERS, 3, block(`/${SERVICE}/Late`)), frame(DATA, 1, 3, frameMessage(HELLO)));
  await open.settle();
  assert.equal(open.goAwayCode, NO_ERROR);
  assert.deepEqual([open.endOf(3)?.type, open.endOf(3)?.payload.readUInt32BE()], [RST, REFUSED_STREAM]);
  using another = connectRaw(`127.0.0.1:${running.server.port}`);
  await assert.rejects(another.unary(`/${SERVICE}/Late`, HELLO), { code: status.UNAVAILABLE });
  finish.resolve();
  assert.equal(String(await answer), 'hello');
  open.socket.destroy();
  await drained;
});

test('a drain cuts at its deadline what will not end', async () => {
  const started = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<void>();
  const method = unary((_, { signal }) => {
    signal.addEventListener('abort', () => aborted.resolve());
    started.resolve();
    return new Promise(() => {});
  });
  await using running = await startGrpcServer([method]);
  const refused = assert.rejects(running.client.unary(ECHO_PATH, HELLO), {
    code: status.UNAVAILABLE,
    details: 'Cannot answer: the server stops',
  });
  await started.promise;
  await running.server.drain(20);
  await Promise.all([refused, aborted.promise]);
});

test('a drain tells clients to go, answers what is under way, and ends', async () => {
  await using other = await startGrpcServer(echoMethods);
  const client = connectHttp2(`http://127.0.0.1:${other.server.port}`);
  await once(client, 'localSettings');
  const codes: number[] = [];
  client.on('goaway', (code) => codes.push(code));
  await other.server.drain(60_000);
  assert.deepEqual([...new Set(codes)], [NO_ERROR]);
});

test('a drain does not wait for those who say nothing, nor for those who do not answer', async () => {
  await using other = await startGrpcServer(echoMethods);
  const silent = connect(other.server.port, '127.0.0.1');
  const deaf = connect(other.server.port, '127.0.0.1');
  deaf.write(Buffer.concat(BEGINNING.map((part) => Buffer.from(part))));
  await Promise.all([once(silent, 'data'), once(deaf, 'data')]);
  const ends = [once(silent.resume(), 'close'), once(deaf.resume(), 'close')];
  await other.server.drain(600_000);
  await Promise.all(ends);
});

test('a drain ends requests that stay unfinished, also of a client that has said goodbye', async () => {
  await using other = await startGrpcServer(echoMethods);
  const halves = [[], [frame(GOAWAY, 0, 0, Buffer.alloc(8))]].map((goodbye) => {
    const socket = connect(other.server.port, '127.0.0.1');
    const request = frame(HEADERS, END_HEADERS, 1, block());
    socket.write(
      Buffer.concat(
        [...BEGINNING, request, ...goodbye, frame(PING, 0, 0, Buffer.alloc(8))].map((part) => Buffer.from(part)),
      ),
    );
    return socket;
  });
  await Promise.all(halves.map((socket) => untilFrame(socket, PING)));
  const ends = halves.map((socket) => once(socket.resume(), 'close'));
  await other.server.drain(600_000);
  await Promise.all(ends);
});

/** Resolves when the server has read all bytes sent so far, which its answer to a ping shows. */
async function untilFrame(socket: Socket, type: number): Promise<void> {
  let received = Buffer.alloc(0);
  for await (const [chunk] of on(socket, 'data') as AsyncIterable<[Buffer]>) {
    received = Buffer.concat([received, chunk]);
    if (readFrames(received).some((one) => one.type === type)) return;
  }
}
