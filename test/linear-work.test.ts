/**
 * No parser that a stranger's bytes come to takes more than linear work: twice the input takes at most twice the blocks
 * of JavaScript. They are counted, so the machine has no say. `bench/parsers.ts` measures the time, of native code too.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countWork } from './support/rules/count-work.ts';
import { hostileInputs, settle } from './support/rules/hostile-input.ts';

/** Counting is slow, and what grows faster than the input shows long before. */
const MAX_BYTES = 65_536;
/** What does not depend on the input: a call, a refusal, the first lines of a file. */
const FIXED_WORK = 1500;

for (const { parser, input, maxBytes, prepare } of hostileInputs)
  test(`${parser}: ${input}: twice the input takes twice the work`, async () => {
    const bytes = Math.min(maxBytes, MAX_BYTES);
    const [half, whole] = [prepare(Math.floor(bytes / 2)), prepare(bytes)];
    // What is done once, such as to load a module or to fill a cache, is done before.
    await settle(half);
    await settle(whole);
    const small = await countWork(half);
    const large = await countWork(whole);
    assert.ok(large <= 2.2 * small + FIXED_WORK, `${small} blocks, ${large} for twice the input`);
  });

test('countWork() sees work that grows faster than its input', async () => {
  const compare = (length: number): number => {
    const numbers = Array.from({ length }, (_, index) => index);
    return numbers.filter((one) => numbers.some((other) => one === length && other === length)).length;
  };
  const [small, large] = [await countWork(() => compare(100)), await countWork(() => compare(200))];
  assert.ok(large > 3.5 * small, `${small} blocks, ${large} for twice the input`);
});
