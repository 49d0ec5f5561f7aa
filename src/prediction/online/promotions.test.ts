/** The p90 of requests under way keeps its coverage after a promotion. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillSteadyLoad, modelOfMedian, observeSharedNoise } from '../../../test/support/prediction/shared-noise.ts';
import type { Forecast } from './forecasts.ts';
import { createLiveModel } from './live-model.ts';
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
