import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EXPERT_COUNT } from './experts.ts';
import { createResidualTracker } from './residual-tracker.ts';
import { createBatch } from './slot-batch.ts';

/** The slow mean residual of a server after these residuals. */
function meanAfter(residuals: readonly number[]): number {
  const tracker = createResidualTracker({ maxServers: 4, maxPodTypes: 1 });
  const key = { server: tracker.servers.ensure(Buffer.from('s')), podType: 0 };
  for (const residual of residuals) tracker.observe(key, 0, { residual, certainty: 1 });
  const batch = createBatch(1);
  batch.count = 1;
  batch.servers[0] = key.server;
  const expertLogFactors = new Float64Array(EXPERT_COUNT);
  tracker.addExpected(batch, { position: 0, signal: 0, speed: 1 }, expertLogFactors);
  return expertLogFactors[0]!;
}

const many = (count: number, residual: number): number[] => Array.from({ length: count }, () => residual);

test('a server twenty times slower than expected is followed all the way', () => {
  const slow = Math.log(20);
  assert.ok(Math.abs(meanAfter(many(150, slow)) - slow) < 0.15);
  assert.ok(Math.abs(meanAfter(many(150, -slow)) + slow) < 0.15);
});

test('one stalled request counts no more than one that took e times as long', () =>
  assert.equal(meanAfter([...many(30, 0), 5]), meanAfter([...many(30, 0), 1])));
