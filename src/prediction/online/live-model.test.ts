import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { createPriorModel, createTargetPrior } from '../model/model.ts';
import { decodeModel, encodeModel, renameModel } from '../model/model-codec.ts';
import { createPredictColumns, METRIC_COLUMNS, type PredictColumns } from '../schema/columns.ts';
import type { Observation } from '../schema/observation.ts';
import { trainModel } from '../training/train-model.ts';
import { createLiveModel, type LiveModel } from './live-model.ts';
import { createPredictor } from './predictor.ts';
import { forecastP90Ms, type TargetForecast } from './target-predictor.ts';

type Input = Observation['input'];

const prefill = observePool({ rows: 200, podType: 'prefill', servers: [1, 1.4] });
const decode = observePool({ rows: 200, podType: 'decode', seed: 2, servers: [0.8, 1.1] });
const model = trainModel('m@1', tabulate([...prefill, ...decode]));
const other = trainModel('m@2', tabulate([...prefill, ...decode].map(slowDown)));

function slowDown(row: Observation): Observation {
  return { ...row, ttftMs: 2 * row.ttftMs!, tpotMs: 2 * row.tpotMs! };
}

function fillColumns(inputs: readonly Input[]): PredictColumns {
  const columns = createPredictColumns(inputs.length);
  columns.count = inputs.length;
  columns.podTypes = [...new Set(inputs.map(({ podType }) => podType))];
  columns.source = Buffer.from(inputs.map(({ serverIp }) => serverIp).join(''));
  let start = 0;
  for (const [i, input] of inputs.entries()) {
    for (const name of METRIC_COLUMNS) columns[name][i] = input[name];
    columns.podType[i] = columns.podTypes.indexOf(input.podType);
    columns.serverIpStart[i] = start;
    columns.serverIpLength[i] = input.serverIp.length;
    start += input.serverIp.length;
  }
  return columns;
}

function answer(live: LiveModel, inputs: readonly Input[]): number[] {
  const predicted = { ttftMs: new Float64Array(inputs.length), tpotMs: new Float64Array(inputs.length) };
  live.predict(fillColumns(inputs), predicted);
  return [...predicted.ttftMs, ...predicted.tpotMs];
}

function observeAll(live: LiveModel, rows: readonly Observation[]): void {
  for (const { input, ttftMs, tpotMs } of rows) {
    const forecast = live.forecast(fillColumns([input]), input.podType, Buffer.from(input.serverIp));
    live.observe(forecast, 'ttft', { observedMs: ttftMs! });
    live.observe(forecast, 'tpot', { observedMs: tpotMs! });
  }
}

test('rows of many pod types, known, observed and made up, are answered in one call as each alone', () => {
  const live = createLiveModel(model);
  observeAll(live, [...prefill.slice(0, 60), ...decode.slice(0, 60)].map(slowDown));
  const inputs = Array.from({ length: 600 }, (_, i) => {
    const { input } = [...prefill, ...decode][(i * 7) % 400]!;
    return i % 3 === 0 ? input : { ...input, podType: `made up ${i}` };
  });
  const together = answer(live, inputs);
  for (const [i, input] of inputs.entries())
    assert.deepEqual([together[i], together[inputs.length + i]], answer(live, [input]));
});

for (const [statistic, readMs] of [
  ['p50', ({ medianMs }: TargetForecast) => medianMs],
  ['p90', forecastP90Ms],
] as const)
  test(`the forecast for a request is what Predict answers for it, ${statistic}`, () => {
    const live = createLiveModel({ ...model, statistic });
    observeAll(live, prefill.slice(0, 80).map(slowDown));
    for (const { input } of [...prefill.slice(80, 90), ...decode.slice(0, 10)]) {
      const [ttft, tpot] = answer(live, [input]);
      const forecast = live.forecast(fillColumns([input]), input.podType, Buffer.from(input.serverIp));
      assert.ok(Math.abs(readMs(forecast.ttft) / ttft! - 1) < 1e-12);
      assert.ok(Math.abs(readMs(forecast.tpot) / tpot! - 1) < 1e-12);
    }
  });

test('an observation moves the next answer for its server, and less those for others', () => {
  const live = createLiveModel(model);
  observeAll(live, prefill.slice(0, 80));
  const { input } = prefill[90]!;
  const inputs = ['10.0.0.0', '10.0.0.1', 'never reported'].map((serverIp) => ({ ...input, serverIp }));
  const before = answer(live, inputs);
  const slowed = prefill.slice(100, 150).filter((row) => row.input.serverIp === inputs[0]!.serverIp);
  observeAll(live, slowed.slice(0, 5).map(slowDown));
  const [own, other, unknown] = answer(live, inputs).map((ms, i) => ms / before[i]!);
  assert.ok(own! > 1.2 && other! < own! && unknown! < own!, `${own} ${other} ${unknown}`);
});

test('until the last step of a swap the old version answers, and from then on the new one as if it had come at once', () => {
  const stepwise = createLiveModel(model);
  const atOnce = createLiveModel(model);
  const inputs = [...prefill.slice(0, 20), ...decode.slice(0, 20)].map(({ input }) => input);
  for (const live of [stepwise, atOnce]) observeAll(live, [...prefill.slice(0, 50), ...decode.slice(0, 30)]);
  const before = answer(stepwise, inputs);
  const steps = stepwise.prepareSwap(other)[Symbol.iterator]();
  let count = 0;
  for (; steps.next().done !== true; count++) {
    assert.equal(stepwise.model, model);
    assert.deepEqual(answer(stepwise, inputs), before);
  }
  assert.ok(count > 2, 'a step for each slot');
  assert.equal(stepwise.model, other);
  atOnce.replaceModel(other);
  assert.deepEqual(answer(stepwise, inputs), answer(atOnce, inputs));
  assert.notDeepEqual(answer(stepwise, inputs), before);
});

test('calls of any size and pod type between the steps of a swap do not disturb it', () => {
  const live = createLiveModel(model);
  const many = Array.from({ length: 300 }, (_, i) => ({
    ...decode[i % 200]!.input,
    podType: i % 2 === 0 ? 'decode' : '',
  }));
  for (const _ of live.prepareSwap(other)) answer(live, many);
  const fresh = createLiveModel(other);
  assert.deepEqual(answer(live, many), answer(fresh, many));
});

test('a pod type without a model of its own is answered by the pooled model, also after a swap, in calls of any size', () => {
  const unnamed = observePool({ rows: 200, seed: 3, servers: [4, 5] });
  const withUnnamed = trainModel('m@3', tabulate([...prefill, ...decode, ...unnamed]));
  const inputs = Array.from({ length: 300 }, (_, i) => ({ ...decode[i % 200]!.input, podType: 'without a model' }));
  const swapped = createLiveModel(model);
  swapped.replaceModel(withUnnamed);
  const few = answer(swapped, inputs.slice(0, 1));
  assert.deepEqual(few, answer(createLiveModel(withUnnamed), inputs.slice(0, 1)));
  const many = answer(swapped, inputs);
  assert.deepEqual([many[0], many[inputs.length]], few);
});

test('a predictor names the version that answered, also while the next one is prepared', async () => {
  const predictor = createPredictor();
  const columns = fillColumns([decode[0]!.input]);
  const predicted = { ttftMs: new Float64Array(1), tpotMs: new Float64Array(1) };
  predictor.swap('m', model);
  const swapped = predictor.swapBetweenCalls('m', other);
  assert.equal(predictor.predict('m', columns, predicted), 'm@1');
  await swapped;
  assert.equal(predictor.predict('m', columns, predicted), 'm@2');
  await predictor.swapBetweenCalls('new', other);
  assert.deepEqual(
    predictor.list().map(({ targetModel }) => targetModel),
    ['m', 'new'],
  );
});

test('a renamed model file is that of the model under the other name', () => {
  const renamed = renameModel(encodeModel(model), 'elsewhere@7');
  assert.deepEqual(renamed, encodeModel({ ...model, id: 'elsewhere@7' }));
  assert.equal(decodeModel(renamed).id, 'elsewhere@7');
});

test('successive versions with pod types of their own leave no slots open', () => {
  const live = createLiveModel(createPriorModel());
  const sizes = Array.from({ length: 6 }, (_, version) => {
    // More than have numbers of their own.
    const names = Array.from({ length: 20 }, (_each, i) => `pod-${version}-${i}`);
    const slots = new Map(names.map((name) => [name, { ttft: createTargetPrior('ttft') }]));
    live.replaceModel({ ...createPriorModel(), id: `m@${version}`, slots });
    const columns = createPredictColumns(1);
    columns.count = 1;
    for (const podType of names)
      live.observe(live.forecast(columns, podType, Buffer.from('s')), 'ttft', { observedMs: 50 });
    return live.learning.slots.size;
  });
  // The first few pod types keep their numbers.
  assert.ok(Math.max(...sizes) <= 20 + 16, sizes.join());
  assert.equal(sizes[5], sizes[2]);
});

test('a restored state opens no slot of a pod type that the served version does not know', () => {
  const names = Array.from({ length: 20 }, (_, i) => `pod-${i}`);
  const slots = new Map(names.map((name) => [name, { ttft: createTargetPrior('ttft') }]));
  const before = createLiveModel({ ...createPriorModel(), slots });
  const columns = createPredictColumns(1);
  columns.count = 1;
  for (const podType of names)
    before.observe(before.forecast(columns, podType, Buffer.from('s')), 'ttft', { observedMs: 50 });
  assert.equal(before.learning.slots.size, 20);
  const after = createLiveModel(createPriorModel());
  after.restore(before.save());
  const { slots: open, podTypes } = after.learning;
  assert.deepEqual(
    [...open.keys()].filter((key) => names.includes(key) && !podTypes.includes(key)),
    [],
  );
  assert.equal(podTypes.length, 15);
});
