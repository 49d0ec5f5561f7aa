import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { frame } from '../../../test/support/grpc/http2-frames.ts';
import { BufferPool } from '../budget/buffer-pool.ts';
import { FrameWriter } from './frame-writer.ts';
import { FRAME } from './frames.ts';

/** Delays each write, as a socket does whose peer does not read. */
class HeldStream extends Writable {
  readonly #held: (() => void)[] = [];
  #chunk: Buffer | undefined;
  readonly taken: Buffer[] = [];

  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#chunk = chunk;
    this.#held.push(done);
  }

  /** The bytes are read only now. */
  finishOne(): void {
    if (this.#chunk !== undefined) this.taken.push(Buffer.from(this.#chunk));
    this.#chunk = undefined;
    this.#held.shift()?.();
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('bytes stay as they were written for as long as the stream has them, whatever else is written meanwhile', async () => {
  const step = fc.record({ who: fc.nat(2), bytes: fc.integer({ min: 0, max: 40_000 }), finishes: fc.boolean() });
  let waited = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const memory = new BufferPool();
      const writers = [0, 1, 2].map(() => ({
        writer: new FrameWriter(memory),
        stream: new HeldStream(),
        expected: [] as Buffer[],
      }));
      for (const [index, { who, bytes, finishes }] of steps.entries()) {
        const { writer, stream, expected } = writers[who]!;
        const payload = Buffer.alloc(bytes, index + 1);
        writer.frame(FRAME.data, 0, index + 1, payload);
        expected.push(frame(FRAME.data, 0, index + 1, payload));
        if (stream.isHolding) waited += 1;
        writer.sendTo(stream);
        if (finishes) writers[(who + index) % 3]!.stream.finishOne();
        // The stream reports in a later turn that it is done.
        if (index % 3 === 0) await nextTurn();
      }
      for (const { stream, expected } of writers) {
        for (let turn = 0; turn < steps.length; turn++) {
          stream.finishOne();
          await nextTurn();
        }
        assert.ok(Buffer.concat(stream.taken).equals(Buffer.concat(expected)));
      }
    }),
    { numRuns: 60 },
  );
  assert.ok(waited > 20, `writes must have waited for others, got ${waited}`);
});
