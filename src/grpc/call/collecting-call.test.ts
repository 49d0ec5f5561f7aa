/** A collector gets each message once it has room for it, in the order of the caller, and is closed once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { serialize } from '../../../test/support/grpc/grpc-client.ts';
import { SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import { DATA, frame, frameMessage, HEADERS, RST } from '../../../test/support/grpc/http2-frames.ts';
import { Failure } from '../../errors.ts';
import { encodeHeaderBlock } from '../hpack/hpack-encoder.ts';
import type { GrpcMethod, MessageCollector } from './service.ts';

const PATH = `/${SERVICE}/Collect`;
const CANCEL = 8;

/** A collector whose room the test controls. */
class TestCollector implements MessageCollector {
  readonly texts: string[] = [];
  readonly onTake = Promise.withResolvers<void>();
  readonly onReserve = Promise.withResolvers<void>();
  readonly onClose = Promise.withResolvers<void>();
  room = 0;
  closed = 0;
  refusal: Failure | undefined;
  goOn = (): void => {};

  get method(): GrpcMethod {
    const open = (_call: unknown, onRoom: () => void): MessageCollector => {
      this.goOn = onRoom;
      return this;
    };
    return { kind: 'client-stream', name: 'Collect', open };
  }

  reserve(): boolean {
    this.onReserve.resolve();
    return this.room > 0;
  }

  take(message: Uint8Array): void {
    if (this.refusal !== undefined) throw this.refusal;
    this.room -= 1;
    this.texts.push(String(message));
    this.onTake.resolve();
  }

  giveRoom(messages: number): void {
    this.room += messages;
    this.goOn();
  }

  finish(): Promise<Uint8Array> {
    return Promise.resolve(Buffer.from(this.texts.join()));
  }

  close(): void {
    this.closed += 1;
    this.onClose.resolve();
  }
}

function openCall(streamId: number, encoding = 'identity'): Buffer {
  const head = encodeHeaderBlock([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', PATH],
    ['te', 'trailers'],
    ['content-type', 'application/grpc'],
    ['grpc-encoding', encoding],
  ]);
  return frame(HEADERS, 4, streamId, head);
}

function compress(text: string): Buffer {
  const framed = frameMessage(gzipSync(text));
  framed[0] = 1;
  return framed;
}

const texts = Array.from({ length: 20 }, (_, index) => `message ${index}`);
const encodings: [what: string, encode: (text: string, index: number) => Buffer][] = [
  ['as they are', (text) => frameMessage(Buffer.from(text))],
  ['compressed', (text) => compress(text)],
  ['compressed in turn', (text, index) => (index % 2 === 0 ? compress(text) : frameMessage(Buffer.from(text)))],
];

for (const [what, encode] of encodings)
  test(`messages ${what} are taken in their order, as many as there is room for`, async () => {
    const collector = new TestCollector();
    await using running = await startGrpcServer([collector.method]);
    const client = await FlowClient.connect(running.server.port);
    client.send(openCall(1, 'gzip'), frame(DATA, 1, 1, Buffer.concat(texts.map(encode))));
    await collector.onReserve.promise;
    assert.deepEqual(collector.texts, []);
    collector.giveRoom(1);
    await collector.onTake.promise;
    await client.settle();
    assert.deepEqual(collector.texts, texts.slice(0, 1));
    collector.giveRoom(100);
    await client.until(() => client.endOf(1) !== undefined);
    assert.match(String(client.endOf(1)?.payload), /grpc-status.0/s);
    assert.deepEqual(collector.texts, texts);
    assert.equal(collector.closed, 1);
    client.socket.destroy();
  });

test('a message that cannot be expanded takes no room, and fails the call', async () => {
  const collector = new TestCollector();
  let reserved = 0;
  collector.room = 1;
  const { method } = collector;
  assert.ok(method.kind === 'client-stream');
  const open: typeof method.open = (call, onRoom) => ({
    ...method.open(call, onRoom),
    reserve: () => {
      reserved += 1;
      return true;
    },
    take: (message) => collector.take(message),
    finish: () => collector.finish(),
    close: () => collector.close(),
  });
  await using running = await startGrpcServer([{ ...method, open }]);
  const client = await FlowClient.connect(running.server.port);
  const broken = frameMessage(Buffer.from('not gzip'));
  broken[0] = 1;
  client.send(openCall(1, 'gzip'), frame(DATA, 0, 1, broken));
  await client.until(() => client.endOf(1) !== undefined);
  assert.match(String(client.endOf(1)?.payload), /grpc-status.{1,3}13/s);
  assert.equal(reserved, 0);
  assert.equal(collector.closed, 1);
  client.socket.destroy();
});

test('a caller who leaves while there is no room closes the collector, which gets nothing more', async () => {
  const collector = new TestCollector();
  await using running = await startGrpcServer([collector.method]);
  const client = await FlowClient.connect(running.server.port);
  client.send(openCall(1), frame(DATA, 0, 1, frameMessage(Buffer.from('lost'))));
  await collector.onReserve.promise;
  client.send(frame(RST, 0, 1, Buffer.of(0, 0, 0, CANCEL)));
  await collector.onClose.promise;
  collector.giveRoom(1);
  await client.settle();
  assert.deepEqual(collector.texts, []);
  assert.equal(collector.closed, 1);
  client.socket.destroy();
});

test('a message that the collector refuses fails the call with that reason', async () => {
  const collector = new TestCollector();
  collector.room = 1;
  collector.refusal = new Failure('conflict', 'Cannot take it');
  await using running = await startGrpcServer([collector.method]);
  const refused = { code: status.ABORTED, details: 'Cannot take it' };
  await assert.rejects(running.client.clientStream(PATH, [Buffer.from('one'), Buffer.from('two')]), refused);
  assert.equal(collector.closed, 1);
});

test('a call whose deadline passes while there is no room closes the collector', async () => {
  const collector = new TestCollector();
  await using running = await startGrpcServer([collector.method]);
  const late = { code: status.DEADLINE_EXCEEDED };
  await assert.rejects(running.client.clientStream(PATH, [Buffer.from('one')], { deadlineMs: 100 }), late);
  await collector.onClose.promise;
  collector.giveRoom(1);
  assert.deepEqual(collector.texts, []);
  assert.equal(collector.closed, 1);
});

test('a drain lets the messages that came find room, and answers them', async () => {
  const collector = new TestCollector();
  await using running = await startGrpcServer([collector.method]);
  const answer = Promise.withResolvers<string>();
  const call = running.client.client.makeClientStreamRequest(
    PATH,
    serialize,
    (bytes) => bytes,
    (error, bytes) => (error === null ? answer.resolve(String(bytes)) : answer.reject(error)),
  );
  call.write(Buffer.from('one'));
  await collector.onReserve.promise;
  const drained = running.server.drain(60_000);
  collector.giveRoom(1);
  assert.equal(await answer.promise, 'one');
  await drained;
  assert.equal(collector.closed, 1);
});
