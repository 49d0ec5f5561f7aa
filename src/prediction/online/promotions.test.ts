/** What was learned from reports is still right after a promotion: the p90 of requests under way, and servers of a large pool. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillSteadyLoad, modelOfMedian, observeSharedNoise } from '../../../test/support/prediction/shared-noise.ts';
import type { LatencyModel } from '../model/model.ts';
import { createRandom } from '../simulator/random-draws.ts';
import type { Forecast } from './forecasts.ts';
import { createLiveModel, type LiveModel } from './live-model.ts';
import type { LiveSlot } from './live-slot.ts';
import { readSlowResidual } from './residual-tracker.ts';
import { forecastP90Ms } from './target-predictor.ts';

const UNDER_WAY = 60;
const REQUESTS = 2500;
/** Requests that are not judged: the window of residuals fills. */
const FIRST_JUDGED = 500;

/** The share of requests below the p90 that they were sent with, in percent, while the same content is promoted every so many reports. */
function holdP90(seed: number, promoteEvery: number): number {
  const observed = observeSharedNoise({ requests: REQUESTS, underWay: UNDER_WAY, seed });
  const live = createLiveModel(modelOfMedian('m@1'));
  const underWay: Forecast[] = [];
  let held = 0;
  for (let i = 0; i < REQUESTS; i++) {
    const ended = i - UNDER_WAY;
    if (ended >= 0) live.observe(underWay.shift()!, 'tpot', { observedMs: observed[ended]! });
    if (ended > 0 && ended % promoteEvery === 0) live.replaceModel(modelOfMedian(`m@${1 + ended / promoteEvery}`));
    const forecast = live.forecast(fillSteadyLoad(), '', Buffer.from('10.0.0.1'));
    underWay.push(forecast);
    if (i >= FIRST_JUDGED && observed[i]! <= forecastP90Ms(forecast.tpot)) held++;
  }
  return (100 * held) / (REQUESTS - FIRST_JUDGED);
}

test('promotions with 60 requests under way leave the coverage of the p90 within 1.5 points', (t) => {
  for (const seed of [7, 8, 9]) {
    const [steady, promoted] = [holdP90(seed, Number.POSITIVE_INFINITY), holdP90(seed, 100)];
    t.diagnostic(`${steady.toFixed(1)} % without promotions, ${promoted.toFixed(1)} % with them`);
    assert.ok(Math.abs(promoted - steady) <= 1.5, `seed ${seed}: ${promoted} % instead of ${steady} %`);
  }
});

test('a promotion of the same content changes the answers for 1,000 servers by less than 5 %', () => {
  const live = createLiveModel(modelOfMedian('m@1'));
  const servers = Array.from({ length: 1000 }, (_, i) => Buffer.from(`10.0.${i >> 8}.${i & 255}`));
  const answer = (server: Buffer) => live.forecast(fillSteadyLoad(), '', server);
  const { ttft, tpot } = answer(servers[0]!);
  for (let round = 0; round < 15; round++)
    for (const [i, server] of servers.entries()) {
      const forecast = answer(server);
      const slowness = i % 10 === 0 ? 2 : 1;
      live.observe(forecast, 'ttft', { observedMs: slowness * ttft.mixtureMs });
      live.observe(forecast, 'tpot', { observedMs: slowness * tpot.mixtureMs });
    }
  const before = servers.map(answer);
  live.replaceModel(modelOfMedian('m@2'));
  for (const [i, server] of servers.entries()) {
    const after = answer(server);
    for (const target of ['ttft', 'tpot'] as const) {
      const ratio = after[target].medianMs / before[i]![target].medianMs;
      assert.ok(Math.abs(ratio - 1) < 0.05, `${target} of server ${i}: ${ratio} times the answer before`);
    }
  }
});

test('a time is not learned for another server that got the number of its own, nor replayed for it', () => {
  const live = createLiveModel(modelOfMedian('m@1'));
  const answer = (server: string) => live.forecast(fillSteadyLoad(), '', Buffer.from(server));
  const listReported = () =>
    [...live.save().servers]
      .filter(({ means }) => readSlowResidual(means, 'tpot').weight > 0)
      .map(({ address }) => address);
  const forecast = answer('10.9.9.9');
  const reportSlow = () => {
    for (let i = 0; i < 20; i++) live.observe(forecast, 'tpot', { observedMs: 10 * forecast.tpot.mixtureMs });
  };
  reportSlow();
  assert.deepEqual(listReported(), ['10.9.9.9']);
  // Twice as many servers as a model keeps: its number is free at first, and then that of another.
  for (let i = 0; i < 2 * live.servers.capacity; i++) answer(`10.1.${i >> 8}.${i & 255}`);
  assert.ok(live.servers.addressOf(forecast.key.server) !== undefined);
  live.replaceModel(modelOfMedian('m@2'));
  assert.deepEqual(listReported(), []);
  reportSlow();
  assert.deepEqual(listReported(), ['10.9.9.9']);
});

/** The model whose times per token are this many times as long. */
function scaleModel(id: string, factor: number): LatencyModel {
  const model = modelOfMedian(id);
  const tpot = model.pooled.tpot!;
  const { physics } = tpot;
  const coefficients = physics.coefficients.map((value) => factor * value);
  return { ...model, pooled: { ...model.pooled, tpot: { ...tpot, physics: { ...physics, coefficients } } } };
}

/** Forecasts a request to each of these servers: a model keeps 8,192, and then forgets those that were used longest ago. */
function nameServers(live: LiveModel, name: string, count: number): void {
  for (let i = 0; i < count; i++) live.forecast(fillSteadyLoad(), '', Buffer.from(`${name}${i}`));
}

test('a request under way when servers were forgotten and a model was replaced is forecast again by means of the new model', () => {
  const live = createLiveModel(modelOfMedian('m@1'));
  const forecast = (server: string) => live.forecast(fillSteadyLoad(), '', Buffer.from(server));
  const slowMs = 3 * forecast('w0').tpot.mixtureMs;
  const observe = (given: Forecast) => live.observe(given, 'tpot', { observedMs: slowMs });
  const early = Array.from({ length: 30 }, (_, i) => forecast(`early ${i}`));
  for (let i = 0; i < 300; i++) observe(forecast(`w${i % 20}`));
  nameServers(live, 'x', 8100);
  const underWay = forecast('new');
  for (const each of early) observe(each);
  for (let i = 0; i < 200; i++) observe(forecast(`w${i % 20}`));
  nameServers(live, 'y', 200);
  assert.equal(live.servers.addressOf(early[0]!.key.server), undefined);
  live.replaceModel(scaleModel('m@2', 3));
  const { tpot } = [...live.learning.slots.values()][0]!;
  const ratios: number[] = [];
  const learn = tpot.observe.bind(tpot);
  tpot.observe = (renewed, ...rest) => {
    ratios.push(renewed.mixtureMs / slowMs);
    learn(renewed, ...rest);
  };
  observe(underWay);
  assert.ok(
    Math.abs(ratios[0]! - 1) < 0.05,
    `the renewed forecast is ${ratios[0]} times what the new model says, which is right`,
  );
});

test('100 quiet slow servers of 2,000 keep their factor at a promotion with 5,000 requests under way', () => {
  const live = createLiveModel(modelOfMedian('m@1'));
  const random = createRandom(3);
  const servers = Array.from({ length: 2000 }, (_, i) => Buffer.from(`10.0.${i >> 8}.${i & 255}`));
  const [quiet, busy] = [servers.slice(0, 100), servers.slice(100)];
  const answer = (server: Buffer) => live.forecast(fillSteadyLoad(), '', server);
  const { ttft, tpot } = answer(servers[0]!);
  const observe = (forecast: Forecast, slowness: number) => {
    live.observe(forecast, 'ttft', { observedMs: slowness * ttft.mixtureMs });
    live.observe(forecast, 'tpot', { observedMs: slowness * tpot.mixtureMs });
  };
  for (let round = 0; round < 15; round++) for (const server of quiet) observe(answer(server), 2);
  const underWay: Forecast[] = [];
  for (let i = 0; i < 20_000; i++) {
    underWay.push(answer(busy[Math.floor(busy.length * random())]!));
    if (underWay.length > 5000) observe(underWay.shift()!, 1);
  }
  const before = quiet.map(answer);
  live.replaceModel(modelOfMedian('m@2'));
  for (const [i, server] of quiet.entries()) {
    const after = answer(server);
    for (const target of ['ttft', 'tpot'] as const) {
      const ratio = after[target].medianMs / before[i]![target].medianMs;
      assert.ok(Math.abs(ratio - 1) < 0.15, `${target} of server ${i}: ${ratio} times the answer before`);
    }
  }
});

test('a replay estimates each row once, by the slot of its pod type, and lets calls through after each part', () => {
  const live = createLiveModel(modelOfMedian('m@1'));
  const rows = 8192;
  for (let i = 0; i < rows; i++) {
    const forecast = live.forecast(
      fillSteadyLoad(),
      `pod ${i % 12}`,
      Buffer.from(`10.1.${(i % 2048) >> 8}.${i & 255}`),
    );
    live.observe(forecast, 'tpot', { observedMs: 20 });
  }
  const kept = live.learning.recent.list().length;
  assert.ok(kept > rows / 2, `${kept} rows are kept`);
  let estimated = 0;
  const slots = [...live.learning.slots.values()] as unknown as { estimate: LiveSlot['estimate'] }[];
  for (const slot of slots) {
    const { estimate } = slot;
    slot.estimate = (columns, servers) => {
      estimated += columns.count;
      return estimate(columns, servers);
    };
  }
  const steps = [...live.prepareSwap(modelOfMedian('m@2'))].length;
  // One for each 128 rows of a slot; another one for the evaluator of each.
  assert.ok(steps >= kept / 128 && steps <= kept / 128 + 2 * slots.length + 1, `${steps} steps for ${kept} rows`);
  assert.ok(estimated <= 128, `${estimated} rows were estimated in the last step`);
});
