import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import { createPredictor } from '../online/predictor.ts';
import { importTrees, placeImported } from '../registry/import-model.ts';
import { createPredictColumns, MODEL_COLUMNS } from '../schema/columns.ts';
import { trainModel } from '../training/train-model.ts';
import { createReadinessReader } from './model-readiness.ts';

const ROWS = observePool({ rows: 200 });
const ONLY_TTFT = trainModel('m@1', tabulate(ROWS.map((row) => ({ ...row, tpotMs: undefined }))));

function serve(model: LatencyModel) {
  const predictor = createPredictor();
  predictor.swap('m', model);
  return { predictor, read: createReadinessReader({ predictor, unknownModel: 'prior', world: createStillWorld() }) };
}

function observeTtft({ predictor }: ReturnType<typeof serve>, count: number): void {
  const live = predictor.live('m');
  const columns = createPredictColumns(1);
  columns.count = 1;
  for (const name of MODEL_COLUMNS) columns[name][0] = 1;
  for (let i = 0; i < count; i++)
    live.observe(live.forecast(columns, '', Buffer.from('10.0.0.1')), 'ttft', { observedMs: 100 });
}

test('a time that was never reported is not ready, before and after a version is swapped in', () => {
  const service = serve(ONLY_TTFT);
  for (let version = 1; version <= 2; version++) {
    const { hasTtft, hasTpot } = service.read('m');
    assert.deepEqual([hasTtft, hasTpot], [true, false]);
    observeTtft(service, 20);
    service.predictor.swap('m', { ...ONLY_TTFT, id: 'm@2' });
  }
});

test('a time that an imported model predicts for one pod type is ready', () => {
  const text = readFileSync(new URL('../formats/fixtures/xgboost-gamma.json', import.meta.url), 'utf8');
  const trees = importTrees({ kind: 'XGBoost', text, features: new Map(), transform: 'identity', unit: 'ms' });
  const placement = { target: 'ttft', podType: 'prefill', statistic: 'p50' } as const;
  const { hasTtft, hasTpot } = serve({ ...placeImported(createPriorModel(), trees, placement), id: 'm@1' }).read('m');
  assert.deepEqual([hasTtft, hasTpot], [true, false]);
});
