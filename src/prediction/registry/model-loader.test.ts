import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { saveTestVersion } from '../../../test/support/prediction/model-versions.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld } from '../../world.ts';
import { createPredictor } from '../online/predictor.ts';
import { createModelLoader, createPromotedAtGauge } from './model-loader.ts';
import { promoteModel } from './model-store.ts';

/** A loader whose first reads by these statements fail, as while the database is away. */
function openLoader(store: Store, failing: readonly string[]) {
  const left = [...failing];
  const read: Store['read'] = async (statement, parameters) => {
    if (left[0] !== statement.name) return await store.read(statement, parameters);
    left.shift();
    throw new Failure('unavailable', 'The database is away');
  };
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => lines.push(line) });
  const predictor = createPredictor();
  // Between tries; without it they would leave no time for anything else.
  const world = { ...createStillWorld(), sleep: () => realWorld.sleep(1) };
  const loader = createModelLoader({ store: { ...store, read }, world, predictor, log, metrics: new Registry() });
  const listMessages = () => lines.map((line) => (JSON.parse(line) as { readonly msg: string }).msg);
  return { loader, predictor, listMessages };
}

forEachEngine(
  'a promoted version that cannot be read while the database is away is served afterwards',
  async (store) => {
    const version = await saveTestVersion(store, 'm');
    await promoteModel(store, { name: 'm', version, reason: 'test', nowMs: 1 });
    const { loader, predictor, listMessages } = openLoader(store, [
      'model-file',
      'model-list-promoted',
      'model-file',
      'model-file',
    ]);
    await loader.load();
    assert.equal(predictor.hasModel('m'), false);
    loader.start();
    await waitUntil(() => predictor.hasModel('m'));
    await loader.stop();
    const cannotLoad = 'Cannot load a promoted model; the version before, or the prior, stays in service';
    assert.deepEqual(listMessages(), [cannotLoad, 'Cannot look for promoted models', 'Serving a model']);
  },
);

test('of more than 256 served models, /metrics shows the latest promotions', async () => {
  const loaded = Array.from({ length: 260 }, (_, index) => ({
    name: `m${index}`,
    version: 1,
    promotedAtMs: 1000 + index,
  }));
  const metrics = new Registry();
  createPromotedAtGauge(metrics, () => loaded);
  const { values } = await metrics.getSingleMetric('trivet_prediction_version_promoted_seconds')!.get();
  assert.deepEqual(
    values.map(({ labels, value }) => [labels.model, value]),
    loaded
      .slice(4)
      .reverse()
      .map(({ name, promotedAtMs }) => [name, promotedAtMs / 1000]),
  );
});
