/** The transport receives bytes that no client should send, and bytes that are unusual but valid. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { ECHO_PATH, echoMethods, HELLO, SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import {
  BEGINNING,
  block,
  CONTINUATION,
  DATA,
  frame,
  frameMessage,
  GOAWAY,
  HEADERS,
  PREFACE,
  PRIORITY,
  type RawFrame,
  RST,
  SETTINGS,
  talk,
  WINDOW_UPDATE,
} from '../../../test/support/grpc/http2-frames.ts';
import { encodeHeaderBlock } from '../hpack/hpack-encoder.ts';

const running = await startGrpcServer(echoMethods);
const { port } = running.server;
after(() => running[Symbol.asyncDispose]());

const hello = frameMessage(HELLO);

test('calls that are cancelled again and again end the connection', async () => {
  const rapid = Array.from({ length: 6000 }, (_, index) => [
    frame(HEADERS, 4, 2 * index + 1, block(`/${SERVICE}/Never`)),
    frame(RST, 0, 2 * index + 1, Buffer.from('00000008', 'hex')),
  ]);
  const goAway = (await talk(port, ...BEGINNING, Buffer.concat(rapid.flat()))).find(({ type }) => type === GOAWAY);
  assert.equal(goAway?.payload.readUInt32BE(4), 11);
});

test('more streams at once than were granted are refused, the others are not disturbed', async () => {
  const opens = Array.from({ length: 1030 }, (_, index) =>
    frame(HEADERS, 4, 2 * index + 1, block(`/${SERVICE}/Later`)),
  );
  const frames = await talk(port, ...BEGINNING, ...opens);
  const resets = frames.filter(({ type }) => type === RST);
  assert.equal(resets.length, 6);
  assert.ok(resets.every(({ payload }) => payload.readUInt32BE(0) === 7));
});

test('a window of a stream that grows by 0 resets that stream alone', async () => {
  const frames = await talk(
    port,
    ...BEGINNING,
    frame(HEADERS, 4, 1, block(`/${SERVICE}/Never`)),
    frame(WINDOW_UPDATE, 0, 1, Buffer.alloc(4)),
    frame(HEADERS, 4, 3, block()),
    frame(DATA, 1, 3, hello),
  );
  const resets = frames.filter(({ type }) => type === RST);
  assert.deepEqual(
    resets.map(({ streamId, payload }) => [streamId, payload.readUInt32BE(0)]),
    [[1, 1]],
  );
  assert.deepEqual(frames.find(({ type, streamId }) => type === DATA && streamId === 3)?.payload, hello);
});

test('headers that are larger than announced refuse their call alone, and their table entries count', async () => {
  const path = Buffer.concat([Buffer.of(0x44, ECHO_PATH.length), Buffer.from(ECHO_PATH)]);
  const long = encodeHeaderBlock([['x-long', 'x'.repeat(33_000)]]);
  const large = Buffer.concat([Buffer.of(0x83, 0x86), path, long]);
  const contentType = encodeHeaderBlock([['content-type', 'application/grpc']]);
  const frames = await talk(
    port,
    ...BEGINNING,
    frame(HEADERS, 4, 1, block(`/${SERVICE}/EchoAll`)),
    frame(HEADERS, 0, 3, large.subarray(0, 16_384)),
    frame(CONTINUATION, 0, 3, large.subarray(16_384, 32_768)),
    frame(CONTINUATION, 4, 3, large.subarray(32_768)),
    frame(DATA, 1, 3, hello),
    frame(DATA, 1, 1, hello),
    frame(HEADERS, 4, 5, Buffer.concat([Buffer.of(0x83, 0x86, 0xbe), contentType])),
    frame(DATA, 1, 5, hello),
  );
  assert.ok(!frames.some(({ type }) => type === GOAWAY));
  const refused = frames.find(({ type, streamId }) => type === HEADERS && streamId === 3);
  assert.equal(refused!.flags & 1, 1);
  assert.match(String(refused?.payload), /grpc-status.8.*Cannot answer: the headers have more than 32768 bytes/s);
  for (const id of [1, 5])
    assert.deepEqual(frames.find(({ type, streamId }) => type === DATA && streamId === id)?.payload, hello);
});

test('bytes may come one by one, with padding, priorities and unknown frames', async () => {
  const padded = Buffer.concat([Buffer.of(3), Buffer.alloc(5), block(), Buffer.alloc(3)]);
  const data = Buffer.concat([Buffer.of(2), hello, Buffer.alloc(2)]);
  const bytes = Buffer.concat([
    Buffer.from(PREFACE),
    frame(SETTINGS, 0, 0, Buffer.from('000100000000' + '00990000ffff', 'hex')),
    frame(PRIORITY, 0, 1, Buffer.alloc(5)),
    frame(0x42, 0xff, 1, Buffer.from('unknown')),
    frame(HEADERS, 0x8 | 0x20, 1, padded.subarray(0, 20 + padded.length - 20)),
    frame(CONTINUATION, 0, 1),
    frame(CONTINUATION, 4, 1),
    frame(DATA, 0x8 | 0x1, 1, data),
  ]);
  const frames = await talk(port, ...Array.from(bytes, (byte) => Buffer.of(byte)));
  const answer = frames.find(({ type, streamId }) => type === DATA && streamId === 1);
  assert.deepEqual(answer?.payload, hello);
});

test('an answer waits for the window of its stream, in the frames that the client allows', async () => {
  const tiny = frame(SETTINGS, 0, 0, Buffer.from('000400000004', 'hex'));
  const calls = [frame(HEADERS, 4, 1, block()), frame(DATA, 1, 1, hello)];
  const closed = await talk(port, PREFACE, tiny, ...calls);
  const dataOf = (frames: RawFrame[]) =>
    Buffer.concat(frames.filter(({ type }) => type === DATA).map(({ payload }) => payload));
  assert.equal(dataOf(closed).length, 4);
  assert.ok(!closed.some(({ type, flags }) => type === HEADERS && (flags & 1) === 1));
  const more = frame(WINDOW_UPDATE, 0, 1, Buffer.from('00000003', 'hex'));
  const opened = await talk(
    port,
    PREFACE,
    tiny,
    ...calls,
    more,
    frame(SETTINGS, 0, 0, Buffer.from('000400000064', 'hex')),
  );
  assert.deepEqual(dataOf(opened), hello);
  assert.ok(opened.some(({ type, flags }) => type === HEADERS && (flags & 1) === 1));
});

test('whatever bytes come, other connections are answered', async () => {
  const good = [...BEGINNING.map((part) => Buffer.from(part)), frame(HEADERS, 4, 1, block()), frame(DATA, 1, 1, hello)];
  const anyFrame = fc
    .tuple(
      fc.integer({ min: 0, max: 11 }),
      fc.integer({ min: 0, max: 255 }),
      fc.integer({ min: 0, max: 9 }),
      fc.uint8Array({ maxLength: 40 }),
    )
    .map(([type, flags, streamId, payload]) => frame(type, flags, streamId, payload));
  await fc.assert(
    fc.asyncProperty(fc.array(anyFrame, { maxLength: 12 }), fc.boolean(), async (frames, isAfterCall) => {
      await talk(port, ...(isAfterCall ? good : BEGINNING), ...frames);
    }),
    { numRuns: 150 },
  );
  assert.equal(String(await running.client.unary(ECHO_PATH, HELLO)), 'hello');
});
