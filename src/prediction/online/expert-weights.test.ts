import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createExpertWeights } from './expert-weights.ts';
import { EXPERTS } from './experts.ts';

const SLOW_MEAN = EXPERTS.findIndex(({ name }) => name === 'trees + slow mean');
const TREES = EXPERTS.findIndex(({ name }) => name === 'trees');

/** Every expert is far off but this one. */
const onlyRight = (expert: number) => ({
  predictions: EXPERTS.map((_, e) => (e === expert ? 0 : 0.7)),
  observedLog: 0,
  certainty: 1,
});

test('at a server that has changed, its mean residuals weigh most, and elsewhere the trees', () => {
  const weights = createExpertWeights(() => 0);
  for (let i = 0; i < 60; i++) for (const server of [0, 1, 2]) weights.observe(server, onlyRight(TREES));
  for (let i = 0; i < 60; i++)
    for (const server of [0, 1, 2]) weights.observe(server, onlyRight(server === 1 ? SLOW_MEAN : TREES));
  assert.ok(weights.weightsOf(1)[SLOW_MEAN]! > 0.9, weights.weightsOf(1).join(' '));
  assert.ok(weights.weightsOf(0)[TREES]! > 0.9);
});

test('physics weighs most once the trees, corrected or not, are far off', () => {
  const weights = createExpertWeights(() => 0);
  const physics = EXPERTS.findIndex(({ name }) => name === 'physics');
  for (let i = 0; i < 60; i++) weights.observe(0, onlyRight(TREES));
  assert.ok(weights.weightsOf(-1)[physics]! < 0.1);
  for (let i = 0; i < 60; i++) weights.observe(0, onlyRight(physics));
  assert.ok(weights.weightsOf(-1)[physics]! > 0.9, weights.weightsOf(-1).join(' '));
});

test('the same losses count less when many other times come between forecast and end', () => {
  const prompt = createExpertWeights();
  const late = createExpertWeights(() => 500);
  const predictions = EXPERTS.map((_, e) => (e === SLOW_MEAN ? 0.4 : 0.7));
  for (let i = 0; i < 10; i++) {
    prompt.observe(-1, { predictions, observedLog: 0, certainty: 1 });
    late.observe(-1, { predictions, observedLog: 0, certainty: 1 });
  }
  assert.ok(prompt.weightsOf(-1)[SLOW_MEAN]! > 0.9, prompt.weightsOf(-1).join(' '));
  assert.ok(late.weightsOf(-1)[TREES]! > 0.3, late.weightsOf(-1).join(' '));
});

test('an unknown server, and one without events, has the weights of the slot', () => {
  const weights = createExpertWeights(() => 0);
  for (let i = 0; i < 30; i++) weights.observe(0, onlyRight(SLOW_MEAN));
  assert.deepEqual(weights.weightsOf(-1), weights.weightsOf(5));
  assert.ok(weights.weightsOf(5)[SLOW_MEAN]! > 0.9);
  weights.forget(0);
  assert.deepEqual(weights.weightsOf(0), weights.weightsOf(-1));
});

test('weights are restored after a restart', () => {
  const before = createExpertWeights(() => 0);
  for (let i = 0; i < 40; i++)
    for (const server of [0, 1]) before.observe(server, onlyRight(server === 0 ? SLOW_MEAN : TREES));
  const after = createExpertWeights(() => 0);
  after.restore(before.save());
  after.restoreServer(9, before.saveServer(0)!);
  const near = (a: Float64Array, b: Float64Array) => a.every((weight, e) => Math.abs(weight - b[e]!) < 1e-2);
  assert.deepEqual(after.weightsOf(-1), before.weightsOf(-1));
  assert.ok(near(after.weightsOf(9), before.weightsOf(0)));
});
