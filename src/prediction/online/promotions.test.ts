/** What was learned from reports is still right after a promotion: the p90 of requests under way, and servers of a large pool. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillSteadyLoad, modelOfMedian, observeSharedNoise } from '../../../test/support/prediction/shared-noise.ts';
import type { Forecast } from './forecasts.ts';
import { createLiveModel } from './live-model.ts';
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
