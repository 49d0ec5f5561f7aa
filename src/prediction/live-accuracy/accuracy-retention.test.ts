/** Periods that are over: how their sums are merged, and when they are forgotten. */
import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { createTestAccuracyWorker } from '../../../test/support/prediction/accuracy-worker.ts';
import { ANSWERED_ROW } from '../../../test/support/prediction/answered-row.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { type Store, statement } from '../../database/store.ts';
import { SWEEP_BATCH } from '../../database/sweep.ts';
import { withSteadyClock } from '../../steady-clock.ts';
import { createLog } from '../../telemetry/log.ts';
import type { CountCell } from './accuracy-recorder.ts';
import { forgetAccuracy } from './accuracy-retention-store.ts';
import { mergeDuePeriods, saveErrorCounts } from './accuracy-store.ts';
import { createAccuracyWorker } from './accuracy-worker.ts';
import type { AnsweredRow } from './answered-row.ts';
import {
  readAccuracyOverTime,
  readErrorParts,
  readErrorsByLoad,
  readServerAccuracy,
  readServerOverTime,
} from './read-accuracy.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const NOW = Date.UTC(2026, 5, 1, 12, 30);
const ERRORS = { targetModel: 'm', target: 'ttft', axis: 'predicted_ms', fromMs: 0 } as const;
const ROW: AnsweredRow = { ...ANSWERED_ROW, nowMs: NOW };

forEachEngine('past periods are merged, of all processes, and nothing is counted twice', async (store, context) => {
  const workers = [createTestAccuracyWorker(store), createTestAccuracyWorker(await context.openAnother())];
  for (const worker of workers) {
    for (let minute = 0; minute < 60; minute++)
      for (const server of ['s1', 's2']) worker.observe({ ...ROW, server, nowMs: NOW - minute * MINUTE_MS });
    await worker.save();
  }
  const count = async () => {
    const [aggregate] = await readAccuracyOverTime(store, {
      targetModel: 'm',
      fromMs: 0,
      stepMs: Number.POSITIVE_INFINITY,
    });
    const query = { targetModel: 'm', fromMs: 0, stepMs: Number.POSITIVE_INFINITY };
    const [server] = await readServerOverTime(store, query, 's2');
    const errors = await readErrorsByLoad(store, ERRORS);
    const part = { kind: 'server', part: 's2' } as const;
    const ofServer = await readErrorsByLoad(store, { ...ERRORS, part });
    return [
      aggregate?.points[0]?.scores.rows,
      server?.points[0]?.scores.rows,
      errors.counts[0]?.times,
      ofServer.counts[0]?.times,
    ];
  };
  assert.deepEqual(await count(), [240, 120, 240, 120]);
  assert.equal(await mergeDuePeriods(store, NOW + 20 * MINUTE_MS), false);
  for (const days of [0.2, 1, 2, 9]) {
    const nowMs = NOW + days * 24 * HOUR_MS;
    await Promise.all([mergeDuePeriods(store, nowMs), mergeDuePeriods(await context.openAnother(), nowMs)]);
    while (await mergeDuePeriods(store, nowMs));
    assert.deepEqual(await count(), [240, 120, 240, 120]);
  }
  const steps = { targetModel: 'm', fromMs: 0, stepMs: 5 * MINUTE_MS };
  const [aggregate] = await readAccuracyOverTime(store, steps);
  assert.deepEqual(
    aggregate?.points.map(({ startMs, scores }) => [startMs % (6 * HOUR_MS), scores.rows]),
    [
      [0, 116],
      [0, 124],
    ],
  );
});

forEachEngine('errors of the last 12 hours are those of all periods that end in them, merged or not', async (store) => {
  const HOURS = 24;
  const cells = Array.from({ length: HOURS }, (_, hour): CountCell => {
    const [cell] = makeCounts('m', 1, 1);
    return { ...cell!, startMs: NOW - (NOW % HOUR_MS) - hour * HOUR_MS };
  });
  await saveErrorCounts(store, 'p', cells);
  // At 12:30, with merged periods that begin at 0, 6, 12 and 18 o'clock.
  const fromMs = NOW - 12 * HOUR_MS;
  const part = { kind: 'server', part: 's0' } as const;
  const count = async () =>
    (await readErrorsByLoad(store, { ...ERRORS, fromMs, part })).counts.reduce((sum, { times }) => sum + times, 0);
  assert.equal(await count(), 13);
  while (await mergeDuePeriods(store, NOW));
  assert.equal(await count(), 13, 'from midnight on');
  const laterMs = fromMs + 5 * HOUR_MS;
  const later = await readErrorsByLoad(store, { ...ERRORS, fromMs: laterMs, part });
  assert.equal(
    later.counts.reduce((sum, { times }) => sum + times, 0),
    13,
    'the period from midnight to six ends later',
  );
  assert.deepEqual(await readErrorParts(store, { targetModel: 'm', target: 'ttft', fromMs: laterMs }), [part]);
  assert.deepEqual(await readErrorParts(store, { targetModel: 'm', target: 'ttft', fromMs: NOW + HOUR_MS }), []);
});

const countErrorsSql = statement<{ target_model: string; rows: number; times: number }>(
  'test-count-errors',
  `SELECT target_model, COUNT(*) AS rows, CAST(SUM(times) AS BIGINT) AS times FROM error_counts
   GROUP BY target_model ORDER BY target_model`,
);

/** Cells of one hour, one for each server. */
function makeCounts(targetModel: string, servers: number, times: number): CountCell[] {
  const cell = { targetModel, kind: 'server', target: 'ttft', version: -1, axis: 0, range: 1, ratio: 1 } as const;
  const startMs = NOW - (NOW % HOUR_MS);
  return Array.from({ length: servers }, (_, i) => ({ ...cell, startMs, part: `s${i}`, times }));
}

forEachEngine('merged errors of a busy model leave out none of another', async (store) => {
  for (let i = 0; i < 5; i++) await saveErrorCounts(store, 'p', makeCounts(`busy-${i}`, 10_500, 100));
  await saveErrorCounts(store, 'p', makeCounts('quiet', 300, 1));
  while (await mergeDuePeriods(store, NOW + 24 * HOUR_MS));
  const counts = await store.read(countErrorsSql);
  // 40,000 rows for all: the quiet model keeps its own, the busy ones divide the others.
  const busy = counts.filter(({ target_model }) => target_model !== 'quiet');
  assert.deepEqual(counts.at(-1), { target_model: 'quiet', rows: 300, times: 300 });
  assert.deepEqual([busy.length, busy.every(({ rows }) => rows === 7940)], [5, true]);
});

forEachEngine('figures of a month ago are forgotten a batch at a time, of every kind', async (store) => {
  const worker = createTestAccuracyWorker(store);
  for (let i = 0; i < 50; i++) worker.observe({ ...ROW, server: `s${i}` });
  worker.observe({ ...ROW, nowMs: NOW + 2 * HOUR_MS, server: 'new' });
  await worker.save();
  const limits: number[] = [];
  const counting: Store = {
    ...store,
    write: async (of, parameters = []) => {
      limits.push(Number(parameters.at(-1)));
      return await store.write(of, parameters);
    },
  };
  const deleted = await forgetAccuracy(counting, NOW + 30 * 24 * HOUR_MS + HOUR_MS);
  assert.deepEqual(deleted, { podTypeSums: 1, serverSums: 50, podTypeCounts: 6, serverCounts: 50, modelCounts: 0 });
  assert.ok(
    limits.every((limit) => limit <= SWEEP_BATCH),
    limits.join(),
  );
  const servers = await readServerAccuracy(store, { targetModel: 'm', nowMs: NOW + 2 * HOUR_MS });
  assert.deepEqual(
    servers.map(({ server }) => server),
    ['new'],
  );
});

forEachEngine('figures are forgotten and merged only while the clock is trusted', async (store) => {
  const worker = createTestAccuracyWorker(store);
  worker.observe(ROW);
  await worker.save();
  const world = createStillWorld(NOW + 400 * 24 * HOUR_MS);
  const countServersAfterRound = async (isTrusted: boolean): Promise<number> => {
    const ahead = createAccuracyWorker({
      store,
      world,
      log: createLog('silent'),
      metrics: new Registry(),
      isClockTrusted: () => isTrusted,
    });
    ahead.start();
    await ahead.stop();
    return (await readServerAccuracy(store, { targetModel: 'm', nowMs: NOW })).length;
  };
  assert.equal(await countServersAfterRound(false), 1);
  assert.equal(await countServersAfterRound(true), 0);
});

forEachEngine('a clock that is an hour ahead for a moment overwrites nothing that is stored', async (store) => {
  let aheadMs = 0;
  const still = createStillWorld(NOW);
  const world = { ...still, nowMs: () => still.nowMs() + aheadMs };
  const { isClockTrusted } = withSteadyClock(world);
  const dependencies = { store, world, log: createLog('silent'), metrics: new Registry() };
  const worker = createAccuracyWorker({ ...dependencies, isClockTrusted });
  still.moveMs(20 * MINUTE_MS);
  assert.equal(isClockTrusted(), true);
  const observe = () => worker.observe({ ...ROW, nowMs: world.nowMs() });
  observe();
  await worker.save();
  aheadMs = HOUR_MS;
  worker.start();
  await worker.stop();
  aheadMs = 0;
  observe();
  await worker.save();
  const [server] = await readServerAccuracy(store, { targetModel: 'm', nowMs: world.nowMs() });
  assert.equal(server?.targets.ttft?.rows, 2);
});
