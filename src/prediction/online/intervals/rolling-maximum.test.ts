import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRollingMaximum } from './rolling-maximum.ts';

test('the rolling maximum covers the last 300 times, and is infinite before there are 20', () => {
  const maximum = createRollingMaximum();
  const observe = (times: number, logRatio: number) => {
    for (let i = 0; i < times; i++) maximum.observe(logRatio);
    return maximum.value;
  };
  assert.equal(observe(19, 0.5), Number.POSITIVE_INFINITY);
  assert.equal(observe(1, 0.2), 0.5);
  assert.equal(observe(1, 3), 3);
  assert.equal(observe(299, 0.1), 3);
  assert.equal(observe(1, 0.1), 0.1);
  assert.equal(observe(300, -1), 0, 'the maximum is at least 0');
});
