import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { openSink, reportRows } from '../../../test/support/prediction/observation-sink.ts';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { createLog } from '../../telemetry/log.ts';
import { createPredictor, type SwappablePredictor } from '../online/predictor.ts';
import { createModelLoader } from '../registry/model-loader.ts';
import { createPredictColumns } from '../schema/columns.ts';
import { createTrainer } from './trainer-worker.ts';

const log = createLog('silent');

/** The p90 of a TPOT divided by its median. */
function readTpotSpread(predictor: SwappablePredictor): number {
  const columns = createPredictColumns(1);
  columns.count = 1;
  columns.podTypes = [''];
  columns.inputTokenLength[0] = 1000;
  columns.numRequestRunning[0] = 8;
  const { predicted } = predictor.predictBatch('m', columns, ['p50', 'p90']);
  return predicted[1]!.tpotMs[0]! / predicted[0]!.tpotMs[0]!;
}

forEachEngine('a training leaves a target with two rows to the prior and its spread', async (store, { place }) => {
  const { sink, world, metrics } = openSink(store);
  const options = { refitRows: 200, refitSeconds: 3600, log, onTrained: async () => {} };
  const trainer = createTrainer({ store, place, world, metrics, ...options });
  const rows = observePool({ rows: 60 }).map((row, i) => ({ ...row, tpotMs: i < 2 ? row.tpotMs! : undefined }));
  await sink.report(reportRows(rows));
  await trainer.runRound();
  await trainer.stop();
  const served = createPredictor();
  await createModelLoader({ store, world, predictor: served, log, metrics: new Registry() }).load();
  assert.deepEqual(served.list(), [{ targetModel: 'm', id: 'm@1' }]);
  assert.ok(readTpotSpread(served) >= readTpotSpread(createPredictor()), `${readTpotSpread(served)}`);
});
