/** What is learned from reports: predictions, intervals and histories of servers, and how much of it runs in one turn of the event loop. */
import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { input, openSink, reportRows, whole } from '../../../test/support/prediction/observation-sink.ts';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { createLog } from '../../telemetry/log.ts';
import type { AnsweredRow } from '../live-accuracy/answered-row.ts';
import { createPredictor, type SwappablePredictor } from '../online/predictor.ts';
import { createPredictColumns, HISTORY_COLUMNS, METRIC_COLUMNS } from '../schema/columns.ts';
import { createSharingWorker } from '../sharing/sharing-worker.ts';
import { trainModel } from '../training/train-model.ts';
import { listSamples } from './sample-store.ts';

function predictOne(predictor: SwappablePredictor, of: typeof input): number {
  const columns = createPredictColumns(1);
  columns.count = 1;
  columns.podTypes = [of.podType];
  for (const name of METRIC_COLUMNS) columns[name][0] = of[name];
  columns.source = Buffer.from(of.serverIp);
  columns.serverIpStart[0] = 0;
  columns.serverIpLength[0] = columns.source.length;
  const predicted = { ttftMs: new Float64Array(1), tpotMs: new Float64Array(1) };
  predictor.predict('m', columns, predicted);
  return predicted.ttftMs[0]!;
}

forEachEngine(
  'a server that turns slow is answered as slow, the others stay as they were, also after a restart',
  async (store) => {
    const { sink, sharing, predictor, world } = openSink(store);
    predictor.swap('m', trainModel('m@1', tabulate(observePool({ rows: 600, servers: [1, 1, 1] }))));
    const at = (serverIp: string, on = predictor) => predictOne(on, { ...input, serverIp });
    const before = at('10.0.0.1');
    await sink.report(reportRows(observePool({ rows: 150, seed: 5, servers: [1, 2.5, 1] })));
    assert.ok(at('10.0.0.1') > 1.7 * before, `${at('10.0.0.1')} after ${before}`);
    assert.ok(at('10.0.0.0') < 1.25 * before);

    await sharing.stop();
    const restarted = createPredictor();
    restarted.swap('m', predictor.live('m').model);
    const dependencies = { store, world, log: createLog('silent'), metrics: new Registry() };
    await createSharingWorker({ ...dependencies, predictor: restarted }).restore();
    assert.ok(Math.abs(at('10.0.0.1', restarted) / at('10.0.0.1') - 1) < 1e-9);
  },
);

forEachEngine('rows of one report are compared with what was predicted before any of them was known', async (store) => {
  const { sink, predictor, answered } = openSink(store);
  predictor.swap('m', trainModel('m@1', tabulate(observePool({ rows: 600 }))));
  const slow = { ...whole, ttftMs: 5000, tpotMs: 500 };
  for (const learn of [() => sink.report(Array(100).fill(slow)), () => sink.learn(Array(100).fill(slow))]) {
    const predictedMs = predictOne(predictor, input);
    await learn();
    const ofReport = answered.splice(0).filter(({ target }) => target === 'ttft');
    assert.equal(ofReport.length, 100);
    assert.equal(new Set(ofReport.map((row) => row.predictedMs)).size, 1);
    assert.equal(new Set(ofReport.map((row) => row.p90Ms)).size, 1);
    assert.ok(predictOne(predictor, input) > 1.05 * predictedMs);
  }
});

/** The p90 over the median of the newest answered row. */
const readWidth = (answered: readonly AnsweredRow[]): number => answered.at(-1)!.p90Ms / answered.at(-1)!.predictedMs;

forEachEngine('two calm reports do not bring the p90 down to the median', async (store) => {
  const { sink, predictor, answered } = openSink(store);
  predictor.swap('m', trainModel('m@1', tabulate(observePool({ rows: 600 }))));
  const row = (noise: number) => ({ ...whole, ttftMs: 100 * Math.exp(noise), tpotMs: undefined });
  const scattered = Array.from({ length: 30 }, (_, i) => row(0.03 * (((7 * i) % 10) - 4.5)));
  for (let reports = 0; reports < 20; reports++) await sink.report(scattered);
  const before = readWidth(answered);
  const calm = Array.from({ length: 30 }, () => row(0));
  for (let reports = 0; reports < 3; reports++) await sink.report(calm);
  const after = readWidth(answered);
  assert.ok(after - 1 > 0.5 * (before - 1), `${after} after ${before}`);
});

forEachEngine('learning from a large batch lets other work of the process through', async (store) => {
  let learned = 0;
  let mostInATurn = 0;
  const { sink } = openSink(store, createPredictor(), () => {
    learned += 1;
  });
  let isDone = false;
  let before = 0;
  const look = (): void => {
    mostInATurn = Math.max(mostInATurn, learned - before);
    before = learned;
    if (!isDone) setImmediate(look);
  };
  look();
  const batch = Array.from({ length: 200 }, () => ({ ...whole, requestId: '' }));
  await Promise.all(Array.from({ length: 5 }, () => sink.report(batch)));
  isDone = true;
  // Each of them has two times to learn from.
  assert.equal(learned, 2000);
  assert.ok(mostInATurn <= 100, `${mostInATurn} in one turn`);
});

forEachEngine(
  'after a clock was set back by an hour, samples and predictions know the past of a server',
  async (store) => {
    const { sink, predictor, world } = openSink(store);
    const report = () => sink.report([{ ...whole, atMs: world.nowMs() }]);
    await report();
    world.moveMs(-3_600_000);
    await report();
    world.moveMs(5000);
    await report();
    const sinceFirstToken = HISTORY_COLUMNS.indexOf('sinceFirstTokenMs');
    // Without the one of the clock that was ahead.
    const newest = await listSamples(store, 'm', { limit: 100, nowMs: world.nowMs() });
    assert.equal(newest.at(-1)?.observation.history?.[sinceFirstToken], 5000);
    world.moveMs(700);
    const columns = createPredictColumns(1);
    columns.count = 1;
    const { servers, histories } = predictor.live('m');
    histories.fill(columns, [servers.ensure(Buffer.from(whole.input.serverIp))], world.nowMs());
    assert.equal(columns.sinceFirstTokenMs[0], 700);
  },
);
