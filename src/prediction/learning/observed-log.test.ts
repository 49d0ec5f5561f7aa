/** Rows of an old log that `trivet observe` adds later do not count as the newest. */
import assert from 'node:assert/strict';
import { openSink, reportRows } from '../../../test/support/prediction/observation-sink.ts';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine, type StorePlace } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { createLog } from '../../telemetry/log.ts';
import type { Answers } from '../evaluation/accuracy.ts';
import { answerRows } from '../evaluation/offline-answers.ts';
import { median } from '../model/calibration.ts';
import { decodeModel } from '../model/model-codec.ts';
import { insertSampleStatements, listSamples } from '../observations/sample-store.ts';
import { listLastTrainings } from '../registry/console-models-store.ts';
import { listModelVersions, readModelFile } from '../registry/model-store.ts';
import type { Observation } from '../schema/observation.ts';
import { createTrainer } from './trainer-worker.ts';

const MONTH_MS = 30 * 86_400_000;
const live = observePool({ rows: 1000 }).map((row, i) => ({ ...row, ttftMs: 95 + (i % 11) }));
const old = observePool({ rows: 2000, seed: 2 }).map((row, i) => ({
  ...row,
  atMs: row.atMs! - MONTH_MS,
  ttftMs: 950 + (i % 101),
}));

type DatedRow = Observation & { readonly atMs: number };

async function addSamples(store: Store, rows: readonly DatedRow[]): Promise<void> {
  const ids = await store.makeIds(rows.length);
  await store.writeAll(insertSampleStatements(rows.map((observation, i) => ({ id: ids[i]!, observation }))));
}

async function predictMedian(store: Store): Promise<number> {
  const served = (await listModelVersions(store, 'm')).find(({ isPromoted }) => isPromoted)!;
  const answers: Answers = { ttft: [], tpot: [] };
  const model = decodeModel(await readModelFile(store, 'm', served.version));
  answerRows(model, tabulate(live), [...live.keys()], answers);
  return median(Float64Array.from(answers.ttft, ({ predictedMs }) => predictedMs).sort());
}

function openTrainer(store: Store, place: StorePlace) {
  const { sink, world, metrics } = openSink(store);
  const options = { refitRows: 200, refitSeconds: 3600, log: createLog('silent'), onTrained: async () => {} };
  return { sink, trainer: createTrainer({ store, place, world, metrics, ...options }) };
}

forEachEngine('an old log that is observed later does not decide what is served', async (store, { place }) => {
  const { sink, trainer } = openTrainer(store, place);
  await sink.report(reportRows(live));
  await trainer.runRound();
  await addSamples(store, old);
  await trainer.runRound();
  await trainer.stop();
  const { outcome } = (await listLastTrainings(store)).get('m')!;
  assert.equal(outcome, 'untested', 'the log has no row among the newest');
  const medianMs = await predictMedian(store);
  assert.ok(medianMs > 80 && medianMs < 125, `${medianMs}`);
  const newest = await listSamples(store, 'm', { limit: live.length });
  assert.deepEqual(
    newest.map(({ observation }) => observation.atMs),
    live.map(({ atMs }) => atMs),
  );
});

/** Trains on the live rows, and then on what comes after them together with the old log. */
async function trainAfterLog(store: Store, place: StorePlace, news: readonly DatedRow[]) {
  const { sink, trainer } = openTrainer(store, place);
  await sink.report(reportRows(live));
  await trainer.runRound();
  await addSamples(store, old.slice(0, 1000));
  await addSamples(store, news);
  await trainer.runRound();
  await trainer.stop();
  return (await listLastTrainings(store)).get('m')!.outcome;
}

const follow = (row: Observation) => ({ ...row, atMs: row.atMs! + live.length * 500 });

forEachEngine('the few rows that came with an old log decide nothing', async (store, { place }) => {
  const news = live.slice(0, 3).map(follow);
  assert.equal(await trainAfterLog(store, place, news), 'untested');
});

forEachEngine(
  'half of the rows that came with an old log are learned from, and half test',
  async (store, { place }) => {
    const slow = live.slice(0, 200).map((row) => ({ ...follow(row), ttftMs: 3 * row.ttftMs }));
    assert.equal(await trainAfterLog(store, place, slow), 'published');
    const { lineage } = (await listModelVersions(store, 'm')).find(({ isPromoted }) => isPromoted)!;
    assert.equal(JSON.parse(lineage).source.judgedRows, 100);
  },
);

forEachEngine('rows that a clock ahead has dated do not hold up the next version', async (store, { place }) => {
  const { trainer } = openTrainer(store, place);
  const nowMs = Date.now();
  await addSamples(
    store,
    live.map((row, i) => ({ ...row, atMs: nowMs + 36_000_000 + i })),
  );
  await trainer.runRound();
  const slow = live.slice(0, 300).map((row, i) => ({ ...row, atMs: nowMs - 1000 + i, ttftMs: 3 * row.ttftMs }));
  await addSamples(store, slow);
  await trainer.runRound();
  await trainer.stop();
  const versions = await listModelVersions(store, 'm');
  assert.deepEqual(
    versions.map(({ version, isPromoted }) => [version, isPromoted]),
    [
      [2, true],
      [1, false],
    ],
  );
});
