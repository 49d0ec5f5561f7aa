import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { selectLeafQuantiles } from './leaf-quantiles.ts';

const entry = fc.record({
  residual: fc.oneof(fc.integer({ min: -5, max: 5 }), fc.float({ noNaN: true, noDefaultInfinity: true })),
  weight: fc.integer({ min: 0, max: 4 }),
  leaf: fc.integer({ min: 0, max: 3 }),
});

test('selectLeafQuantiles() finds what sorting each leaf finds', () => {
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 60 }), fc.constantFrom(0.1, 0.25, 0.5, 0.9, 1), (entries, level) => {
      const selected = selectLeafQuantiles(
        {
          leafOfRow: Uint8Array.from(entries, ({ leaf }) => leaf),
          residuals: Float64Array.from(entries, ({ residual }) => residual),
          weights: Float64Array.from(entries, ({ weight }) => weight),
        },
        level,
      );
      for (let leaf = 0; leaf < 5; leaf++) {
        const copies = entries
          .filter((of) => of.leaf === leaf)
          .flatMap(({ residual, weight }) => Array.from({ length: weight }, () => residual))
          .sort((a, b) => a - b);
        const expected = copies[Math.max(0, Math.ceil(level * copies.length) - 1)] ?? 0;
        assert.equal(selected[leaf]! + 0, expected + 0);
      }
    }),
    { numRuns: 2000 },
  );
});
