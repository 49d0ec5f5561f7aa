import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { simulatePool } from '../../../test/support/prediction/simulated-pool.ts';
import { readTable } from '../formats/read-table.ts';
import { DEFAULT_START, toObservationLine } from '../simulator/recording.ts';
import { GPUS } from '../simulator/step-time.ts';
import { DEFAULT_TRAINING } from '../training/train-model.ts';
import { measureAccuracy } from './accuracy.ts';
import { evaluate } from './protocols.ts';
import { type Age, ageMetrics } from './stale-metrics.ts';

const [gpu] = GPUS;
const recorded = simulatePool({ gpus: [gpu!, gpu!], seed: 3, durationMs: 200_000, requestsPerSecondEach: 1.2 });
const { table } = await readTable(['-'], {
  format: 'jsonl',
  targetModel: 'm',
  stdin: Readable.from(
    recorded.map((row) =>
      Buffer.from(`${JSON.stringify(toObservationLine(row, Date.parse(DEFAULT_START)))}
`),
    ),
  ),
});
const inTime = Array.from({ length: table.count }, (_, row) => row).sort((a, b) => table.atMs[a]! - table.atMs[b]!);

test('metrics are those of the last row of the same server that is old enough, and the request stays its own', () => {
  const aged = ageMetrics(table, inTime, { ms: 1500 });
  let changed = 0;
  for (const row of inTime) {
    const ofServer = inTime.filter((other) => table.server[other] === table.server[row]);
    const seen = ofServer.findLast((other) => table.atMs[other]! <= table.atMs[row]! - 1500) ?? ofServer[0]!;
    assert.equal(aged.numRequestRunning[row], table.numRequestRunning[seen]);
    assert.equal(aged.kvCacheUsage[row], table.kvCacheUsage[seen]);
    assert.equal(aged.inputTokenLength[row], table.inputTokenLength[row]);
    assert.equal(aged.prefixCacheScore[row], table.prefixCacheScore[row]);
    if (aged.inflightTokens[row] !== table.inflightTokens[row]) changed++;
  }
  assert.ok(changed > table.count / 3, `${changed} of ${table.count} rows changed`);
});

test('an age in rows counts those of the same server', () => {
  const aged = ageMetrics(table, inTime, { rows: 2 });
  for (const server of new Set(table.server.subarray(0, table.count))) {
    const rows = inTime.filter((row) => table.server[row] === server);
    for (const [i, row] of rows.entries())
      assert.equal(aged.inflightTokens[row], table.inflightTokens[rows[Math.max(0, i - 2)]!]);
  }
});

test('metrics without age are judged as by time, and old ones predict worse', () => {
  const parameters = { ...DEFAULT_TRAINING, trees: { ...DEFAULT_TRAINING.trees, trees: 60 } };
  const judge = (age: Age) => evaluate('stale-metrics', table, { parameters, onProgress: () => {}, age });
  const mape = (age: Age) => measureAccuracy(judge(age).ttft)!.mape;
  assert.deepEqual(judge({ ms: 0 }), evaluate('time', table, { parameters, onProgress: () => {} }));
  assert.ok(mape({ ms: 5000 }) > mape({ ms: 0 }), `${mape({ ms: 5000 })} against ${mape({ ms: 0 })}`);
});

test('an age in milliseconds needs rows with times', () => {
  const timeless = { ...table, atMs: new Float64Array(table.count).fill(Number.NaN) };
  const options = { parameters: DEFAULT_TRAINING, onProgress: () => {} };
  assert.throws(
    () => evaluate('stale-metrics', timeless, { ...options, age: { ms: 100 } }),
    /not all rows have a time/,
  );
});
