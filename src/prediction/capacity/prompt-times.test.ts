import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillMetrics } from '../schema/input-fields.ts';
import type { Observation } from '../schema/observation.ts';
import { createRandom } from '../simulator/random-draws.ts';
import { collectPromptTimes } from './prompt-times.ts';

const INPUT = { ...fillMetrics(() => 0), podType: '', serverIp: 's', numRequestRunning: 4 };

/** Two prompts arrive together: the first takes 10 ms and a millisecond for each 10 tokens, the second waits for it. */
function listSamples(waiting = 0): Observation[] {
  const samples: Observation[] = [];
  for (let i = 0; i < 100; i++) {
    const atMs = 1e6 + 1000 * i;
    const tokens = 100 + 10 * (i % 50);
    const ownMs = 10 + tokens / 10;
    const input = { ...INPUT, inputTokenLength: tokens, numRequestWaiting: i === 0 ? waiting : 0 };
    samples.push({ targetModel: 'm', input, atMs, ttftMs: ownMs, tpotMs: undefined });
    samples.push({ targetModel: 'm', input, atMs: atMs + 1, ttftMs: 2 * ownMs - 1, tpotMs: undefined });
  }
  return samples;
}

test('the time of a prompt begins when those before it are computed', () => {
  const times = collectPromptTimes(listSamples(), 1)!;
  for (const isQueued of [false, true])
    for (const tokens of [120, 300, 560]) {
      const ms = times.draw({ underWay: 4, tokens, isQueued }, createRandom(1));
      assert.ok(Math.abs(ms - (10 + tokens / 10)) < 2, `${tokens} tokens: ${ms} ms`);
    }
});

test('a prompt longer than all that were observed takes longer, in proportion', () => {
  const times = collectPromptTimes(listSamples(), 1)!;
  const ms = times.draw({ underWay: 4, tokens: 900, isQueued: false }, createRandom(1));
  assert.ok(Math.abs(ms - 100) < 12, `${ms} ms`);
});

test('the first prompt of a recording that begins with a queue says nothing of its own time', () => {
  const samples = listSamples(200);
  samples[0] = { ...samples[0]!, ttftMs: 40_000 };
  const times = collectPromptTimes(
    samples.filter((_, i) => i !== 1),
    1,
  )!;
  const random = createRandom(2);
  for (let i = 0; i < 300; i++) assert.ok(times.draw({ underWay: 4, tokens: 100, isQueued: false }, random) < 1000);
});

test('waits for requests that no sample shows say nothing of the time of a prompt', () => {
  const sparse = listSamples().map((sample, i) => ({
    ...sample,
    atMs: 1e6 + 60_000 * i,
    input: { ...sample.input, numRequestWaiting: 9 },
  }));
  assert.equal(collectPromptTimes(sparse, 1), undefined);
});
