import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPriorModel, findTimeModel } from '../model/model.ts';
import { createPriorPhysics } from '../physics/physics.ts';
import { createPredictColumns, MODEL_COLUMNS } from '../schema/columns.ts';
import { fillMetrics } from '../schema/input-fields.ts';
import { createLiveModel, type LiveModel } from './live-model.ts';

const SERVER = Buffer.from('10.0.0.1');

/** A request after this many that wait. */
function describeLoad(waiting: number) {
  const columns = createPredictColumns(1);
  columns.count = 1;
  for (const name of MODEL_COLUMNS) columns[name][0] = Number.NaN;
  for (const [name, value] of Object.entries(fillMetrics(() => 0))) columns[name as 'kvCacheUsage'][0] = value;
  columns.inputTokenLength[0] = 200;
  columns.numRequestWaiting[0] = waiting;
  return columns;
}

function answer(live: LiveModel, waiting: number): number {
  return live.forecast(describeLoad(waiting), '', SERVER).ttft.medianMs;
}

/** The first requests of a burst: each waits 2 ms for each request before it, where the prior assumes 40 ms. */
function observeHerd(live: LiveModel, requests: number): void {
  const forecasts = Array.from({ length: requests }, (_, i) => live.forecast(describeLoad(i), '', SERVER));
  for (const [i, forecast] of forecasts.entries()) live.observe(forecast, 'ttft', { observedMs: 20 + 2 * i });
}

test('a prior with too high a price of waiting requests is corrected by the first dozen first tokens', () => {
  const live = createLiveModel(createPriorModel());
  const expectedMs = 20 + 2 * 1000;
  assert.ok(answer(live, 1000) > 10 * expectedMs);
  observeHerd(live, 32);
  const ratio = answer(live, 1000) / expectedMs;
  assert.ok(ratio > 0.5 && ratio < 2, `${ratio}`);
  assert.equal(live.model.id, 'prior@1');
});

test('a fitted prior is fitted again after a restart', () => {
  const before = createLiveModel(createPriorModel());
  observeHerd(before, 32);
  const after = createLiveModel(createPriorModel());
  after.restore(before.save());
  const ratio = answer(after, 1000) / answer(before, 1000);
  assert.ok(ratio > 0.8 && ratio < 1.25, `${ratio}`);
});

test('eight slow first requests do not make the prior slower: a server that was just started is slow', () => {
  const live = createLiveModel(createPriorModel());
  const forecasts = Array.from({ length: 8 }, () => live.forecast(describeLoad(0), '', SERVER));
  for (const forecast of forecasts) live.observe(forecast, 'ttft', { observedMs: 5000 });
  assert.deepEqual(findTimeModel(live.model, '', 'ttft').physics, createPriorPhysics('ttft'));
});

test('a prior that is fitted to one target keeps what was learned about servers for the other', () => {
  const live = createLiveModel(createPriorModel());
  const readMeans = () => [...live.learning.tracker.readTarget({ kind: 'model', number: 0 }, 'tpot')];
  const send = () => live.forecast(describeLoad(0), '', SERVER);
  // More than are kept to be replayed.
  for (let i = 0; i < 700; i++) live.observe(send(), 'tpot', { observedMs: 20 + (i % 7), outputTokens: 3 });
  const { swaps } = send();
  const means = readMeans();
  observeHerd(live, 32);
  assert.ok(send().swaps > swaps, 'the prior was fitted');
  assert.deepEqual(readMeans(), means);
});

test('a prior that stays keeps what was learned about servers', () => {
  const live = createLiveModel(createPriorModel());
  const forecasts = Array.from({ length: 8 }, () => live.forecast(describeLoad(0), '', SERVER));
  for (const forecast of forecasts) live.observe(forecast, 'ttft', { observedMs: 5000 });
  assert.equal(live.forecast(describeLoad(0), '', SERVER).swaps, forecasts[0]!.swaps);
});

test('the first times to the first token fit the prior of TTFT alone', () => {
  const live = createLiveModel(createPriorModel());
  const { tpot, ttft } = live.model.pooled;
  observeHerd(live, 32);
  assert.notEqual(live.model.pooled.ttft, ttft);
  assert.equal(live.model.pooled.tpot, tpot);
});
