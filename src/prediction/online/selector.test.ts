import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EXPERTS } from './experts.ts';
import { createSelector } from './selector.ts';

const OFFSET = EXPERTS.findIndex(({ name }) => name === 'trees + slow offset');
const TREES = EXPERTS.findIndex(({ name }) => name === 'trees');

/** Every expert is far off but this one. */
const onlyRight = (expert: number) => EXPERTS.map((_, e) => (e === expert ? 0 : 0.7));

test('where a server has changed, offsets are believed there, and the trees elsewhere', () => {
  const selector = createSelector();
  for (let i = 0; i < 60; i++) for (const server of [0, 1, 2]) selector.observe(server, onlyRight(TREES), 0);
  for (let i = 0; i < 60; i++)
    for (const server of [0, 1, 2]) selector.observe(server, onlyRight(server === 1 ? OFFSET : TREES), 0);
  assert.ok(selector.weightsOf(1)[OFFSET]! > 0.9, selector.weightsOf(1).join(' '));
  assert.ok(selector.weightsOf(0)[TREES]! > 0.9);
});

test('physics is believed once the trees, corrected or not, are far off', () => {
  const selector = createSelector();
  const physics = EXPERTS.findIndex(({ name }) => name === 'physics');
  for (let i = 0; i < 60; i++) selector.observe(0, onlyRight(TREES), 0);
  assert.ok(selector.weightsOf(-1)[physics]! < 0.1);
  for (let i = 0; i < 60; i++) selector.observe(0, onlyRight(physics), 0);
  assert.ok(selector.weightsOf(-1)[physics]! > 0.9, selector.weightsOf(-1).join(' '));
});

test('an unknown server, and one that has said nothing, has the weights of the slot', () => {
  const selector = createSelector();
  for (let i = 0; i < 30; i++) selector.observe(0, onlyRight(OFFSET), 0);
  assert.deepEqual(selector.weightsOf(-1), selector.weightsOf(5));
  assert.ok(selector.weightsOf(5)[OFFSET]! > 0.9);
  selector.forget(0);
  assert.deepEqual(selector.weightsOf(0), selector.weightsOf(-1));
});

test('weights are taken up again after a restart', () => {
  const before = createSelector();
  for (let i = 0; i < 40; i++)
    for (const server of [0, 1]) before.observe(server, onlyRight(server === 0 ? OFFSET : TREES), 0);
  const after = createSelector();
  after.restore(before.save());
  after.restoreServer(9, before.saveServer(0)!);
  const near = (a: Float64Array, b: Float64Array) => a.every((weight, e) => Math.abs(weight - b[e]!) < 1e-2);
  assert.deepEqual(after.weightsOf(-1), before.weightsOf(-1));
  assert.ok(near(after.weightsOf(9), before.weightsOf(0)));
});
