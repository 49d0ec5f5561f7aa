/** The transport under bytes that no client should send, and under those that are odd but good. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { ECHO_PATH, echoMethods, HELLO, SERVICE, startGrpcServer } from '../../../test/support/grpc-server.ts';
import {
  BEGINNING,
  block,
  CONTINUATION,
  DATA,
  frame,
  frameMessage,
  GOAWAY,
  HEADERS,
  PING,
  PREFACE,
  PRIORITY,
  PUSH,
  type RawFrame,
  RST,
  SETTINGS,
  talk,
  WINDOW_UPDATE,
} from '../../../test/support/http2-frames.ts';

const running = await startGrpcServer(echoMethods);
const { port } = running.server;
after(() => running[Symbol.asyncDispose]());

const hello = frameMessage(HELLO);

const faults: [why: string, code: number, ...frames: (Buffer | string)[]][] = [
  ['does not begin as HTTP/2 does', 1, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['has a frame above the largest size', 6, ...BEGINNING, frame(DATA, 0, 1, Buffer.alloc(16_385))],
  ['has data on stream 0', 1, ...BEGINNING, frame(DATA, 0, 0, hello)],
  ['has data on a stream that was not opened', 1, ...BEGINNING, frame(DATA, 0, 5, hello)],
  ['opens an even stream', 1, ...BEGINNING, frame(HEADERS, 4, 2, block())],
  ['opens stream 0', 1, ...BEGINNING, frame(HEADERS, 4, 0, block())],
  ['opens streams in the wrong order', 5, ...BEGINNING, frame(HEADERS, 5, 5, block()), frame(HEADERS, 4, 3, block())],
  ['pushes', 1, ...BEGINNING, frame(PUSH, 4, 1, Buffer.alloc(4))],
  ['continues no header block', 1, ...BEGINNING, frame(CONTINUATION, 4, 1, block())],
  ['interrupts a header block', 1, ...BEGINNING, frame(HEADERS, 0, 1, block()), frame(PING, 0, 0, Buffer.alloc(8))],
  [
    'continues the header block of another stream',
    1,
    ...BEGINNING,
    frame(HEADERS, 0, 1, block()),
    frame(CONTINUATION, 4, 3),
  ],
  [
    'never ends a header block',
    11,
    ...BEGINNING,
    frame(HEADERS, 0, 1),
    ...Array.from({ length: 70 }, () => frame(CONTINUATION, 0, 1)),
  ],
  [
    'has a header block that is too large',
    11,
    ...BEGINNING,
    frame(HEADERS, 0, 1),
    ...Array.from({ length: 3 }, () => frame(CONTINUATION, 0, 1, Buffer.alloc(16_000))),
  ],
  ['has headers that can not be decoded', 9, ...BEGINNING, frame(HEADERS, 4, 1, Buffer.of(0xfe))],
  [
    'has padding longer than its frame',
    1,
    ...BEGINNING,
    frame(HEADERS, 4, 1, block(`/${SERVICE}/Later`)),
    frame(DATA, 8, 1, Buffer.of(9, 1)),
  ],
  ['has settings of 5 bytes', 6, ...BEGINNING, frame(SETTINGS, 0, 0, Buffer.alloc(5))],
  ['has settings on a stream', 1, ...BEGINNING, frame(SETTINGS, 0, 1)],
  ['acknowledges settings with content', 6, ...BEGINNING, frame(SETTINGS, 1, 0, Buffer.alloc(6))],
  ['sets a window above 2^31', 3, ...BEGINNING, frame(SETTINGS, 0, 0, Buffer.from('0004ffffffff', 'hex'))],
  ['sets the largest frame to 100', 1, ...BEGINNING, frame(SETTINGS, 0, 0, Buffer.from('000500000064', 'hex'))],
  ['sets push to 2', 1, ...BEGINNING, frame(SETTINGS, 0, 0, Buffer.from('000200000002', 'hex'))],
  ['pings with 7 bytes', 6, ...BEGINNING, frame(PING, 0, 0, Buffer.alloc(7))],
  ['pings on a stream', 1, ...BEGINNING, frame(PING, 0, 1, Buffer.alloc(8))],
  ['grows a window by 0', 1, ...BEGINNING, frame(WINDOW_UPDATE, 0, 0, Buffer.alloc(4))],
  ['grows a window with 3 bytes', 6, ...BEGINNING, frame(WINDOW_UPDATE, 0, 0, Buffer.alloc(3))],
  [
    'grows the window of the connection above 2^31',
    3,
    ...BEGINNING,
    frame(WINDOW_UPDATE, 0, 0, Buffer.from('7fffffff', 'hex')),
  ],
  ['resets a stream that was not opened', 1, ...BEGINNING, frame(RST, 0, 7, Buffer.alloc(4))],
  ['resets with 3 bytes', 6, ...BEGINNING, frame(HEADERS, 4, 1, block()), frame(RST, 0, 1, Buffer.alloc(3))],
  ['goes away on a stream', 1, ...BEGINNING, frame(GOAWAY, 0, 1, Buffer.alloc(8))],
  ['has a priority of 4 bytes', 6, ...BEGINNING, frame(PRIORITY, 0, 1, Buffer.alloc(4))],
  [
    'sends more than the window of a stream',
    3,
    ...BEGINNING,
    frame(HEADERS, 4, 1, block(`/${SERVICE}/EchoAll`)),
    ...Array.from({ length: 400 }, () =>
      frame(
        DATA,
        0,
        1,
        Buffer.concat(
          [Buffer.from('000000000b', 'hex'), Buffer.alloc(11)].concat(
            Array.from({ length: 900 }, () => Buffer.from('0000000000', 'hex')),
          ),
        ),
      ),
    ),
  ],
];
for (const [why, code, ...frames] of faults)
  test(`a connection that ${why} ends with error ${code}`, async () => {
    const goAway = (await talk(port, ...frames)).find(({ type }) => type === GOAWAY);
    assert.equal(goAway?.payload.readUInt32BE(4), code);
  });

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
