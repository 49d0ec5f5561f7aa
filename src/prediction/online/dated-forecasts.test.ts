/** Forecasts as of an earlier moment, as those of requests whose dispatches went to another process, by callers with wrong clocks too. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillSteadyLoad, modelOfMedian, observeSharedNoise } from '../../../test/support/prediction/shared-noise.ts';
import type { Forecast } from './forecasts.ts';
import { createLiveModel } from './live-model.ts';
import { forecastP90Ms } from './target-predictor.ts';

const UNDER_WAY = 60;
/** Requests that are not judged: the window of residuals fills. */
const FIRST_JUDGED = 500;
const STEP_MS = 50;
const HOUR_MS = 3_600_000;

interface Pool {
  readonly requests: number;
  readonly servers: number;
  /** When the caller says that a request was sent. Undefined: its forecast is remembered. */
  readonly date?: (request: number, sentMs: number) => number;
  /** The clock is set back by an hour before this request. */
  readonly setBackAt?: number;
}

/** Serves requests that are sent to the servers in turn. */
function serve({ requests, servers, date, setBackAt }: Pool) {
  let nowMs = HOUR_MS * 24;
  const live = createLiveModel(modelOfMedian('m@1'), { nowMs: () => nowMs });
  const observed = observeSharedNoise({ requests, underWay: UNDER_WAY, seed: 7 });
  const forecast = (request: number, sentMs?: number) =>
    live.forecast(fillSteadyLoad(), '', Buffer.from(`10.0.0.${request % servers}`), sentMs);
  const remembered: Forecast[] = [];
  let held = 0;
  let sum = 0;
  for (let i = 0; i < requests; i++) {
    nowMs += i === setBackAt ? STEP_MS - HOUR_MS : STEP_MS;
    remembered.push(forecast(i));
    const p90Ms = forecastP90Ms(remembered[i]!.tpot);
    if (i >= FIRST_JUDGED && observed[i]! <= p90Ms) held++;
    if (i >= FIRST_JUDGED) sum += Math.log(p90Ms);
    const ended = i - UNDER_WAY;
    if (ended < 0) continue;
    const given = date === undefined ? remembered[ended]! : forecast(ended, date(ended, nowMs - UNDER_WAY * STEP_MS));
    live.observe(given, 'tpot', { observedMs: observed[ended]! });
  }
  const judged = requests - FIRST_JUDGED;
  return { live, percent: (100 * held) / judged, meanLogP90: sum / judged };
}

test('a forecast as of a dispatch knows neither the times of its server nor those of the others since then', (t) => {
  for (const servers of [1, 60, 240]) {
    const pool = { requests: 2500, servers };
    const [remembered, dated] = [serve(pool), serve({ ...pool, date: (_, sentMs) => sentMs })];
    t.diagnostic(`${servers} servers: ${remembered.percent.toFixed(1)} % and ${dated.percent.toFixed(1)} %`);
    assert.ok(Math.abs(dated.percent - remembered.percent) <= 1.5, `${dated.percent} %, not ${remembered.percent} %`);
  }
});

test('requests that a caller with a late clock dates an hour back leave the p90 of the others, and memory, as they are', () => {
  const pool = { requests: 10_000, servers: 60 };
  const right = serve({ ...pool, date: (_, sentMs) => sentMs });
  const late = serve({ ...pool, date: (request, sentMs) => sentMs - (request % 100 === 0 ? HOUR_MS : 0) });
  assert.ok(Math.abs(late.percent - right.percent) <= 0.5, `${late.percent} %, not ${right.percent} %`);
  const ratio = Math.exp(late.meanLogP90 - right.meanLogP90);
  assert.ok(Math.abs(ratio - 1) < 0.02, `${ratio} times the p90`);
  assert.ok(late.live.learning.recent.list().length <= right.live.learning.recent.list().length);
});

test('a clock that is set back by an hour leaves forecasts as of a dispatch as they are', (t) => {
  const pool = { requests: 2500, servers: 60, date: (_: number, sentMs: number) => sentMs };
  const [right, setBack] = [serve(pool), serve({ ...pool, setBackAt: FIRST_JUDGED })];
  const ratio = Math.exp(setBack.meanLogP90 - right.meanLogP90);
  t.diagnostic(`${setBack.percent.toFixed(1)} %, not ${right.percent.toFixed(1)} %; ${ratio} times the p90`);
  assert.ok(Math.abs(setBack.percent - right.percent) <= 1, `${setBack.percent} %, not ${right.percent} %`);
  assert.ok(Math.abs(ratio - 1) < 0.02, `${ratio} times the p90`);
});
