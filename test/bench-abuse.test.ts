import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseTry, findMisses, isNoisePossible } from '../bench/abuse/goals.ts';
import type { Measured } from '../bench/abuse/measure-attack.ts';

const experience = { calls: 1000, failures: 0, failure: '', leftOut: 0, p50Ms: 1, p99Ms: 2 };
const good: Measured = {
  attack: 'a flood',
  auth: 'on',
  alone: experience,
  during: experience,
  ratio: 1,
  maxRatio: 3,
  peakRssMb: 100,
  hasDied: false,
  noCoreShare: 0,
  attackerShare: 0,
};

test('chooseTry() keeps the try with the smallest ratio', () => {
  const [slow, slower] = [
    { ...good, ratio: 4 },
    { ...good, ratio: 9 },
  ];
  assert.equal(chooseTry(slow, slower), slow);
  assert.equal(chooseTry(slower, slow), slow);
});

test('chooseTry() takes a try that missed more than p99, whatever its ratio', () => {
  const slow = { ...good, ratio: 4 };
  for (const bad of [
    { ...slow, ratio: 9, hasDied: true },
    { ...slow, ratio: 9, peakRssMb: 500 },
    { ...good, during: { ...experience, failures: 1 } },
  ]) {
    assert.equal(chooseTry(slow, bad), bad);
    assert.equal(isNoisePossible(bad), false);
  }
});

test('isNoisePossible() holds for p99 alone', () => {
  assert.equal(isNoisePossible(good), false);
  const slow = { ...good, ratio: 4 };
  assert.deepEqual([findMisses(slow), isNoisePossible(slow)], [['p99'], true]);
});
