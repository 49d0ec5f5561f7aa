import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { ANSWERED_ROW } from '../../../test/support/answered-row.ts';
import { createAccuracyMetrics } from './accuracy-metrics.ts';
import { type AnsweredRow, createLiveAccuracy } from './live-accuracy.ts';

const ROW: AnsweredRow = { ...ANSWERED_ROW, nowMs: 1 };

function open() {
  const metrics = new Registry();
  const accuracy = createLiveAccuracy();
  const count = createAccuracyMetrics(metrics, accuracy);
  const observe = (changes: Partial<AnsweredRow>) => {
    const row = { ...ROW, ...changes };
    accuracy.observe(row);
    count(row);
  };
  const read = async (name: string) => {
    const { values } = await metrics.getSingleMetric(`trivet_prediction_${name}_ratio`)!.get();
    return values.map(({ labels, value }) => [...Object.values(labels), Math.round(value * 1000) / 1000]);
  };
  return { observe, read };
}

test('each part of a model has its scores', async () => {
  const { observe, read } = open();
  observe({});
  observe({ observedMs: 200, podType: 'aggregate' });
  observe({ predictedMs: 50 });
  observe({ podType: 'prefill', target: 'tpot', observedMs: 110 });
  const part = ['m', 'aggregate', 'ttft'];
  const other = ['m', 'prefill', 'tpot'];
  assert.deepEqual(await read('mape'), [
    [...part, 0.35],
    [...other, 0],
  ]);
  assert.deepEqual(await read('mdape'), [
    [...part, 0.45],
    [...other, 0],
  ]);
  assert.deepEqual(await read('wape'), [
    [...part, 0.375],
    [...other, 0],
  ]);
  assert.deepEqual(await read('bias'), [
    [...part, -0.283],
    [...other, 0],
  ]);
  assert.deepEqual(await read('p90_coverage'), [
    [...part, 0.667],
    [...other, 1],
  ]);
  assert.deepEqual(await read('server_mape'), [
    ['m', '10.0.0.1', 'ttft', 0.351],
    ['m', '10.0.0.1', 'tpot', 0],
  ]);
  assert.deepEqual(await read('server_mdape'), [
    ['m', '10.0.0.1', 'ttft', 0.45],
    ['m', '10.0.0.1', 'tpot', 0],
  ]);
  assert.deepEqual(await read('server_wape'), [
    ['m', '10.0.0.1', 'ttft', 0.376],
    ['m', '10.0.0.1', 'tpot', 0],
  ]);
  assert.deepEqual(await read('server_p90_coverage'), [
    ['m', '10.0.0.1', 'ttft', 0.667],
    ['m', '10.0.0.1', 'tpot', 1],
  ]);
});

test('only the last times count, and only so many names are kept', async () => {
  const { observe, read } = open();
  for (let i = 0; i < 50; i++) observe({ predictedMs: 1000 });
  for (let i = 0; i < 300; i++) observe({ predictedMs: 100 });
  assert.deepEqual(await read('mape'), [['m', 'aggregate', 'ttft', 0]]);
  for (let i = 0; i < 300; i++) observe({ podType: `p${i}`, server: `s${i}`, nowMs: i });
  assert.equal((await read('mape')).length, 256);
  const servers = (await read('server_mape')).map(([, server]) => server);
  assert.deepEqual([servers.length, servers[0]], [200, 's299']);
});
