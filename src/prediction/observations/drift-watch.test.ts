import assert from 'node:assert/strict';
import {
  dispatched,
  finished,
  firstToken,
  openSink,
  reportRows,
} from '../../../test/support/prediction/observation-sink.ts';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { trainModel } from '../training/train-model.ts';

const rows = observePool({ rows: 400 });
const slower = rows.map((row) => ({ ...row, ttftMs: row.ttftMs! * 3, tpotMs: row.tpotMs! * 3 }));

forEachEngine(
  'servers that the prior does not fit raise no drift alarm: nothing was learned from them',
  async (store) => {
    const { sink, drifted } = openSink(store);
    await sink.report(reportRows(rows));
    await sink.report(reportRows(slower));
    assert.deepEqual(drifted, []);
  },
);

forEachEngine('servers that change raise a drift alarm of the version that learned them', async (store) => {
  const { sink, predictor, drifted } = openSink(store);
  predictor.swap('m', trainModel('m@1', tabulate(rows)));
  await sink.report(reportRows(rows));
  assert.deepEqual(drifted, []);
  await sink.report(reportRows(slower));
  assert.ok(drifted.length > 0);
});

forEachEngine('a time that a version leaves to the prior raises no drift alarm', async (store) => {
  const { sink, predictor, drifted } = openSink(store);
  const twoTpots = rows.map((row, i) => (i < 2 ? row : { ...row, tpotMs: undefined }));
  predictor.swap('m', trainModel('m@1', tabulate(twoTpots)));
  await sink.report(reportRows(rows.map((row) => ({ ...row, ttftMs: undefined }))));
  await sink.report(reportRows(slower.map((row) => ({ ...row, ttftMs: undefined }))));
  assert.deepEqual(drifted, []);
});

forEachEngine('another version with other errors is no drift', async (store) => {
  const { sink, predictor, drifted } = openSink(store);
  // Learned from servers three times as slow: its trees are wrong throughout, and its errors do not move.
  predictor.swap('m', trainModel('m@1', tabulate(slower)));
  await sink.report(reportRows(rows).slice(0, 200));
  const before = drifted.length;
  predictor.swap('m', trainModel('m@2', tabulate(rows)));
  await sink.report(reportRows(rows).slice(200));
  assert.equal(drifted.length, before);
});

forEachEngine('a version that was replaced while its requests were under way raises no alarm', async (store) => {
  const { sink, predictor, drifted } = openSink(store);
  const underWay = slower.slice(0, 60).map((row, i) => ({ ...row, requestId: `r${i}` }));
  predictor.swap('m', trainModel('m@1', tabulate(rows)));
  await sink.report(underWay.map(({ requestId, input }) => ({ ...dispatched, requestId, input })));
  predictor.swap('m', trainModel('m@2', tabulate(slower)));
  await sink.report(
    underWay.flatMap(({ requestId, ttftMs, tpotMs }) => [
      { ...firstToken, requestId, ttftMs },
      { ...finished, requestId, tpotMs },
    ]),
  );
  assert.deepEqual(drifted, []);
});
