import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { BufferPool } from '../budget/buffer-pool.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import { FrameWriter } from './frame-writer.ts';
import { FRAME, PREFACE } from './frames.ts';

interface Sent {
  readonly streamId: number;
  readonly payload: Uint8Array;
}

const sentFrames: fc.Arbitrary<Sent[]> = fc.array(
  fc.record({ streamId: fc.integer({ min: 0, max: 1000 }), payload: fc.uint8Array({ maxLength: 40 }) }),
  { maxLength: 12 },
);

function writeFrames(frames: readonly Sent[]): Buffer {
  const writer = new FrameWriter(new BufferPool());
  const out = new PassThrough();
  for (const { streamId, payload } of frames) writer.frame(FRAME.data, 1, streamId, Buffer.from(payload));
  writer.sendTo(out);
  return Buffer.concat([PREFACE, out.read() ?? Buffer.alloc(0)]);
}

/** At each of the positions, in any order. */
function cut(bytes: Buffer, positions: readonly number[]): Buffer[] {
  const ends = [...positions.map((position) => position % bytes.length), bytes.length].toSorted((a, b) => a - b);
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end));
}

function read(chunks: readonly Buffer[]): Frame[] {
  const reader = new FrameReader();
  const frames: Frame[] = [];
  for (const chunk of chunks) reader.read(chunk, (frame) => 0 < frames.push(frame));
  assert.ok(reader.hasPreface);
  return frames;
}

test('however what is sent is cut into reads, its frames are the same', () => {
  fc.assert(
    fc.property(sentFrames, fc.array(fc.nat(), { maxLength: 30 }), (sent, positions) => {
      const expected = sent.map(({ streamId, payload }) => ({
        type: FRAME.data,
        flags: 1,
        streamId,
        payload: Buffer.from(payload),
      }));
      assert.deepEqual(read(cut(writeFrames(sent), positions)), expected);
    }),
  );
});

test('bytes that come one by one are frames in the end', () => {
  const bytes = writeFrames([1, 3, 5].map((streamId) => ({ streamId, payload: new Uint8Array(20).fill(streamId) })));
  const frames = read(Array.from(bytes, (byte) => Buffer.of(byte)));
  assert.deepEqual(
    frames.map(({ streamId, payload }) => [streamId, payload.length, payload[19]]),
    [[1, 20, 1], [3, 20, 3], [5, 20, 5]], // biome-ignore format: a table
  );
});

test('a frame that is too large is refused by its head, also when a read ends within it', () => {
  const head = Buffer.from([0xff, 0, 0, FRAME.data, 0, 0, 0, 0, 1]);
  for (const chunks of [[Buffer.concat([PREFACE, head])], [PREFACE, head.subarray(0, 2), head.subarray(2)]])
    assert.throws(() => read(chunks), /a frame is too large/);
});
