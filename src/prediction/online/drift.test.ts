import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRandom } from '../simulator/random-draws.ts';
import { createDriftDetector, isNearlyCovered } from './drift.ts';

const random = createRandom(7);
const noise = () => 0.4 * (random() - 0.5);

test('an alarm comes after a lasting shift of the errors, not after noise', () => {
  const drift = createDriftDetector();
  for (let i = 0; i < 3000; i++) assert.equal(drift.observe(noise(), i % 10 !== 0), undefined);
  let events = 0;
  let cause = drift.observe(0.5, true);
  for (; cause === undefined; events++) cause = drift.observe(0.5 + noise(), true);
  assert.equal(cause, 'error');
  assert.ok(events < 100, `${events} events`);
});

test('an alarm comes when three of ten are above their p90, not while one of ten is', () => {
  const drift = createDriftDetector();
  for (let i = 0; i < 3000; i++) assert.equal(drift.observe(noise(), random() < 0.9), undefined);
  let events = 0;
  let cause = drift.observe(0, false);
  for (; cause === undefined; events++) cause = drift.observe(noise(), random() < 0.7);
  assert.equal(cause, 'coverage');
  assert.ok(events < 200, `${events} events`);
  assert.equal(drift.observe(0, false), undefined, 'it starts again');
});

test('times that exceed their p90 by less than the tolerance raise no alarm, however many', () => {
  const drift = createDriftDetector();
  for (let i = 0; i < 300; i++) assert.equal(drift.observe(0, isNearlyCovered(102, 100)), undefined);
  const causes = Array.from({ length: 60 }, () => drift.observe(0, isNearlyCovered(106, 100)));
  assert.ok(causes.includes('coverage'));
});
