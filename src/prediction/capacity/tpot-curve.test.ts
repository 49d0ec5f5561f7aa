import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillMetrics } from '../schema/input-fields.ts';
import type { Observation } from '../schema/observation.ts';
import { createRandom } from '../simulator/random-draws.ts';
import { fitTpotCurve } from './tpot-curve.ts';

const INPUT = { ...fillMetrics(() => 0), podType: '', serverIp: 's' };

/** A server with 10 ms a token at 8 requests under way, from which each prompt token takes 0.05 ms. */
function listSamples(outputTokens: number | undefined): Observation[] {
  const random = createRandom(3);
  const samples: Observation[] = [];
  for (let atMs = 0; samples.length < 900; atMs += 2000) {
    // One prompt is computed in all the time of an answer: its length is the pace.
    const promptTokensPerMs = 10 * random();
    const tpotMs = 10 / (1 - 0.05 * promptTokensPerMs);
    const answer = { atMs, ttftMs: 1, tpotMs, outputTokens };
    const prompt = { atMs: atMs + 1, ttftMs: 100 * tpotMs, tpotMs: undefined };
    for (const [times, tokens] of [
      [answer, 0],
      [prompt, 100 * tpotMs * promptTokensPerMs],
    ] as const)
      samples.push({ targetModel: 'm', input: { ...INPUT, inputTokenLength: tokens, numRequestRunning: 8 }, ...times });
  }
  return samples;
}

test('a curve tells the time of tokens from the time that prompts take', () => {
  const curve = fitTpotCurve(listSamples(undefined), { outputTokens: 100, reportedShare: 1 })!;
  assert.ok(Math.abs(curve.at(8, 0) - 10) < 0.1, `${curve.at(8, 0)}`);
  assert.ok(Math.abs(curve.at(8, 10) - 20) < 0.4, `${curve.at(8, 10)}`);
  assert.ok(Math.abs(curve.paceAt(8, 30) - -0.05) < 0.005, `${curve.paceAt(8, 30)}`);
  assert.ok(Math.abs(curve.countDelayed(8, 400) - 2) < 0.1, `${curve.countDelayed(8, 400)}`);
});

test('a curve uses the length of each answer where samples tell it', () => {
  const curve = fitTpotCurve(listSamples(100), { outputTokens: 1e6, reportedShare: 1 })!;
  assert.ok(Math.abs(curve.at(8, 10) - 20) < 0.4, `${curve.at(8, 10)}`);
});

test('a curve of one load stays flat above it, though means of it differ by rounding', () => {
  const samples = listSamples(100).map((sample, i) => ({ ...sample, tpotMs: sample.tpotMs && 10 + (i % 7) / 10 }));
  const curve = fitTpotCurve(samples, { outputTokens: 100, reportedShare: 1 })!;
  for (const underWay of [0, 7, 9, 100]) assert.ok(Math.abs(curve.at(underWay, 0) - 10.3) < 0.2, `${underWay}`);
});
