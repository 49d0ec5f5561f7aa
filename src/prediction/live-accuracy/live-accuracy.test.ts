import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { countTurns } from '../../../test/support/basics/count-turns.ts';
import { createTestAccuracyWorker } from '../../../test/support/prediction/accuracy-worker.ts';
import { ANSWERED_ROW } from '../../../test/support/prediction/answered-row.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { realWorld } from '../../world.ts';
import { measureAccuracy } from '../evaluation/accuracy.ts';
import { registerAccuracyMetrics } from './accuracy-metrics.ts';
import { addObservation, createSums, mergeSums, toScores } from './accuracy-sums.ts';
import type { AnsweredRow } from './answered-row.ts';
import {
  readAccuracyOverTime,
  readErrorParts,
  readErrorsByLoad,
  readPodTypeAccuracy,
  readServerAccuracy,
  readServerOverTime,
  readVersionAccuracy,
} from './read-accuracy.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const NOW = Date.UTC(2026, 5, 1, 12, 30);
const ROW: AnsweredRow = { ...ANSWERED_ROW, nowMs: NOW };

/** Rows with errors of every size, the same at each call. */
function makeRows(count: number): AnsweredRow[] {
  return Array.from({ length: count }, (_, i) => {
    const observedMs = 100 + ((i * 37) % 91);
    return { ...ROW, observedMs, predictedMs: observedMs * (0.6 + ((i * 61) % 97) / 100), p90Ms: 200 };
  });
}

test('scores are those of the evaluation, however the rows are divided into sums', () => {
  const rows = makeRows(200);
  const parts = [createSums(), createSums()];
  for (const [i, row] of rows.entries()) addObservation(parts[i % 3 === 0 ? 0 : 1]!, row);
  const sums = createSums();
  for (const part of parts) mergeSums(sums, part);
  const expected = measureAccuracy(rows.map((row, i) => ({ row: i, ...row })))!;
  const { mdape, ...scores } = toScores(sums)!;
  for (const [name, value] of Object.entries(scores))
    assert.ok(Math.abs(value - expected[name as keyof typeof scores]) < 1e-9, `${name} ${value}`);
  assert.ok(Math.abs(mdape - expected.mdape) < 1, `${mdape} beside ${expected.mdape}`);
});

forEachEngine('processes write their own sums, and every process reads those of all', async (store, context) => {
  const other = await context.openAnother();
  const [one, two] = [createTestAccuracyWorker(store), createTestAccuracyWorker(other)];
  one.observe(ROW);
  two.observe({ ...ROW, nowMs: NOW - HOUR_MS, observedMs: 200, podType: 'aggregate', version: 2 });
  two.observe({ ...ROW, podType: 'prefill', target: 'tpot', server: 's2' });
  await one.save();
  await two.save();
  one.observe(ROW);
  await one.save();
  for (const reader of [store, other]) {
    const [whole, prefill, ...rest] = await readPodTypeAccuracy(reader, { targetModel: 'm', nowMs: NOW });
    assert.deepEqual(rest, []);
    assert.deepEqual([prefill?.podType, prefill?.target, prefill?.scores.rows], ['prefill', 'tpot', 1]);
    assert.deepEqual([whole?.podType, whole?.scores.rows, Math.round(whole!.scores.mape)], ['', 3, 22]);
    assert.deepEqual(whole?.hours.map((hour) => hour?.rows ?? 0).slice(-3), [0, 1, 2]);
    const servers = await readServerAccuracy(reader, { targetModel: 'm', nowMs: NOW });
    assert.deepEqual(
      servers
        .toSorted((a, b) => (a.server < b.server ? -1 : 1))
        .map(({ server, targets, lastMs }) => [server, targets.ttft?.rows, targets.tpot?.rows, lastMs]),
      [
        ['10.0.0.1', 3, undefined, NOW],
        ['s2', undefined, 1, NOW],
      ],
    );
    const versions = await readVersionAccuracy(reader, NOW);
    assert.deepEqual(
      versions.map(({ version, targets }) => [version, targets.ttft?.rows]),
      [
        [1, 2],
        [2, 1],
      ],
    );
  }
});

forEachEngine('the sums of a day are added up two hours in a turn, over all of them', async (store) => {
  const worker = createTestAccuracyWorker(store);
  for (const hours of [0, 1, 3, 11, 23, 25]) worker.observe({ ...ROW, nowMs: NOW - hours * HOUR_MS });
  worker.observe({ ...ROW, nowMs: NOW + HOUR_MS });
  await worker.save();
  const countRead = async <T>(read: Promise<T>): Promise<T> => {
    const turns = await countTurns(read);
    assert.ok(turns >= 12, `${turns} turns`);
    return await read;
  };
  const [version] = await countRead(readVersionAccuracy(store, NOW));
  assert.equal(version?.targets.ttft?.rows, 6);
  const [server] = await countRead(readServerAccuracy(store, { targetModel: 'm', nowMs: NOW }));
  assert.deepEqual([server?.targets.ttft?.rows, server?.lastMs], [6, NOW + HOUR_MS]);
});

forEachEngine('charts show versions over time, and errors by load', async (store) => {
  const worker = createTestAccuracyWorker(store);
  const before = { ...ROW, nowMs: NOW - 20 * MINUTE_MS, observedMs: 220 };
  for (let i = 0; i < 3; i++) worker.observe({ ...before, metrics: ROW.metrics.with(2, 100) });
  worker.observe({ ...ROW, version: 2 });
  await worker.save();
  const query = { targetModel: 'm', fromMs: NOW - HOUR_MS, stepMs: 5 * MINUTE_MS };
  const [series] = await readAccuracyOverTime(store, query);
  assert.deepEqual(
    series?.points.map(({ startMs, version, scores }) => [(startMs - NOW) / MINUTE_MS, version, scores.rows]),
    [
      [-20, 1, 3],
      [0, 2, 1],
    ],
  );
  const [ofServer] = await readServerOverTime(store, query, '10.0.0.1');
  assert.deepEqual([ofServer?.part, ofServer?.points.length], ['10.0.0.1', 2]);
  const errors = { targetModel: 'm', target: 'ttft', fromMs: NOW - HOUR_MS } as const;
  const { edges, ratioEdges, counts } = await readErrorsByLoad(store, { ...errors, axis: 'num_request_waiting' });
  const described = counts.map(({ range, ratio, times }) => [edges[range - 1], ratioEdges[ratio - 1], times]);
  assert.deepEqual(described, [
    [2, 1 / 1.1, 1],
    [64, 2, 3],
  ]);
  const ofVersion = await readErrorsByLoad(store, { ...errors, axis: 'predicted_ms', version: 2 });
  assert.deepEqual([ofVersion.counts.length, ofVersion.counts[0]?.times], [1, 1]);
});

forEachEngine('errors are kept apart by pod type, and predicted times by server', async (store) => {
  const worker = createTestAccuracyWorker(store);
  worker.observe(ROW);
  for (let i = 0; i < 2; i++) worker.observe({ ...ROW, podType: 'prefill', server: 's2' });
  await worker.save();
  const errors = { targetModel: 'm', target: 'ttft', fromMs: NOW - HOUR_MS } as const;
  const count = async (axis: 'predicted_ms' | 'kv_cache_usage', kind?: 'pod type' | 'server', part = '') => {
    const read = await readErrorsByLoad(store, { ...errors, axis, part: kind && { kind, part } });
    return read.counts.reduce((sum, { times }) => sum + times, 0);
  };
  assert.deepEqual(await readErrorParts(store, errors), [
    { kind: 'pod type', part: '' },
    { kind: 'pod type', part: 'prefill' },
    { kind: 'server', part: '10.0.0.1' },
    { kind: 'server', part: 's2' },
  ]);
  assert.deepEqual(
    [await count('kv_cache_usage'), await count('kv_cache_usage', 'pod type', 'prefill')],
    [3, 2],
    'all pod types, and one',
  );
  assert.deepEqual(
    [await count('predicted_ms', 'server', 's2'), await count('kv_cache_usage', 'server', 's2')],
    [2, 0],
  );
  assert.deepEqual(await readErrorParts(store, { ...errors, target: 'tpot' }), []);
});

forEachEngine('metrics are over the newest periods with enough times, the same in every process', async (store) => {
  const metrics = new Registry();
  const world = { ...realWorld, nowMs: () => NOW };
  registerAccuracyMetrics({ store, metrics, world });
  const worker = createTestAccuracyWorker(store);
  for (let i = 0; i < 400; i++) worker.observe({ ...ROW, nowMs: NOW - HOUR_MS, predictedMs: 900 });
  for (let i = 0; i < 299; i++) worker.observe({ ...ROW, nowMs: NOW - 6 * MINUTE_MS });
  worker.observe({ ...ROW, podType: 'prefill', target: 'tpot', server: 's2', observedMs: 110 });
  worker.observe({ ...ROW, observedMs: 160 });
  await worker.save();
  const read = async (name: string) => {
    const { values } = await metrics.getSingleMetric(`trivet_prediction_${name}_ratio`)!.get();
    const lines = values.map(({ labels, value }) => [...Object.values(labels), Math.round(value * 1000) / 1000]);
    return lines.sort((a, b) => (String(a) < String(b) ? -1 : 1));
  };
  const other = ['m', 'prefill', 'tpot'];
  assert.deepEqual(await read('mape'), [
    ['m', 'aggregate', 'ttft', 0.101],
    [...other, 0],
  ]);
  assert.deepEqual(await read('p90_coverage'), [
    ['m', 'aggregate', 'ttft', 0.997],
    [...other, 1],
  ]);
  assert.deepEqual(await read('server_mape'), [
    ['m', '10.0.0.1', 'ttft', 0.101],
    ['m', 's2', 'tpot', 0],
  ]);
});

forEachEngine('more names than a period may have do not hide the model', async (store) => {
  const worker = createTestAccuracyWorker(store);
  for (let i = 0; i < 5000; i++) worker.observe({ ...ROW, server: `s${i}` });
  await worker.save();
  const query = { targetModel: 'm', nowMs: NOW };
  const [aggregate] = await readPodTypeAccuracy(store, query);
  assert.equal(aggregate?.scores.rows, 5000);
  assert.equal((await readServerAccuracy(store, query)).length, 4096);
});

forEachEngine('what was not written when the database was away is written once it is back', async (store) => {
  let isAway = true;
  const flaky: Store = {
    ...store,
    writeAll: async (steps) => {
      const answer = await store.writeAll(steps);
      // The rows are stored, and the answer is lost.
      if (isAway) throw new Error('connection lost');
      return answer;
    },
  };
  const worker = createTestAccuracyWorker(flaky);
  worker.observe(ROW);
  await assert.rejects(worker.save(), /connection lost/);
  worker.observe(ROW);
  isAway = false;
  await worker.save();
  const [aggregate] = await readPodTypeAccuracy(store, { targetModel: 'm', nowMs: NOW });
  assert.equal(aggregate?.scores.rows, 2);
});
