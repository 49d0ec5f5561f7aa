import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { forEachEngine, type StorePlace } from '../../../test/support/engines.ts';
import { openSink, reportRows, whole } from '../../../test/support/observation-sink.ts';
import { observePool } from '../../../test/support/observed-pool.ts';
import type { Store } from '../../database/store.ts';
import { createLog } from '../../telemetry/log.ts';
import { listFreshSamples } from '../observations/sample-count-store.ts';
import { listSamples } from '../observations/sample-store.ts';
import { createPredictor } from '../online/predictor.ts';
import { createModelLoader } from '../registry/model-loader.ts';
import { listModelVersions } from '../registry/model-store.ts';
import { DEFAULT_TRAINING } from '../training/train-model.ts';
import { createTrainer } from './trainer-worker.ts';

/** How long a training takes by the clock of the test. */
const TRAINING_MS = 1000;
const DAY_MS = 86_400_000;

/** A round looks at 1,024 models by name, and the one that is due is behind all of them. */
async function startCrowdedTrainer(store: Store, place: StorePlace) {
  const { sink, world, metrics } = openSink(store);
  const onTrained = async () => {};
  const options = { refitRows: 200, refitSeconds: 3600, log: createLog('silent'), onTrained };
  const names = Array.from({ length: 1100 }, (_, index) => `m${index}`);
  for (let first = 0; first < names.length; first += 100)
    await sink.report(names.slice(first, first + 100).map((targetModel) => ({ ...whole, targetModel })));
  await sink.report(observePool({ rows: 60 }).map((row) => ({ ...whole, input: row.input, targetModel: 'z' })));
  return { trainer: createTrainer({ store, place, world, metrics, ...options }), names };
}

forEachEngine('a round of the trainer looks first at the models that are reported often', async (store, { place }) => {
  const { trainer, names } = await startCrowdedTrainer(store, place);
  for (const name of names) trainer.countObserved(name);
  for (let i = 0; i < 60; i++) trainer.countObserved('z');
  await trainer.runRound();
  assert.deepEqual((await listFreshSamples(store, 'y')).fresh, []);
  await trainer.stop();
});

forEachEngine(
  'a round of the trainer goes on where the last one ended, so that every model gets its turn',
  async (store, { place }) => {
    const { trainer } = await startCrowdedTrainer(store, place);
    const trained = async () => (await listFreshSamples(store, 'y')).fresh.length === 0;
    await trainer.runRound();
    assert.equal(await trained(), false);
    await trainer.runRound();
    assert.equal(await trained(), true);
    await trainer.stop();
  },
);

forEachEngine(
  'a training that a clock a day ahead has dated does not hold up the next one',
  async (store, { place }) => {
    const { sink, world, metrics } = openSink(store);
    const options = { refitRows: 200, refitSeconds: 3600, log: createLog('silent'), onTrained: async () => {} };
    const trainer = createTrainer({ store, place, world, metrics, ...options });
    const report = () => sink.report(reportRows(observePool({ rows: 60 })));
    world.moveMs(DAY_MS);
    await report();
    await trainer.runRound();
    assert.deepEqual((await listFreshSamples(store)).fresh, []);
    world.moveMs(-DAY_MS);
    await report();
    await trainer.runRound();
    assert.deepEqual((await listFreshSamples(store)).fresh, []);
    await trainer.stop();
  },
);

forEachEngine(
  'a training that does not end in time is ended, gives its lease back, and is done again in a later round',
  async (store, { place }) => {
    const { sink, world } = openSink(store);
    const options = { refitRows: 200, refitSeconds: 3600, log: createLog('silent'), onTrained: async () => {} };
    await sink.report(reportRows(observePool({ rows: 200 })));
    const open = (maxTrainingMs?: number) => {
      const limit = maxTrainingMs === undefined ? {} : { maxTrainingMs };
      return createTrainer({ store, place, world, metrics: new Registry(), ...options, ...limit });
    };
    const hanging = open(1);
    await assert.rejects(hanging.runRound(), {
      code: 'deadline',
      message: 'Cannot train the model "m": it took longer than 0.001 s',
    });
    await hanging.stop();
    const next = open();
    await next.runRound();
    await next.stop();
    assert.equal((await listModelVersions(store, 'm')).length, 1);
  },
);

forEachEngine(
  'the trainer learns from reports, publishes what is better, and keeps what is not',
  async (store, { place }) => {
    const { sink, world } = openSink(store);
    const metrics = new Registry();
    const trainer = createTrainer({
      store,
      place,
      world,
      log: createLog('silent'),
      metrics,
      refitRows: 200,
      refitSeconds: 3600,
      onTrained: async () => world.moveMs(TRAINING_MS),
    });
    await trainer.runRound();
    await sink.report(reportRows(observePool({ rows: 40 })));
    await trainer.runRound();
    assert.equal((await listFreshSamples(store)).fresh[0]?.count, 40, 'too few to learn from');

    await sink.report(reportRows(observePool({ rows: 300, seed: 2 })));
    await trainer.runRound();
    const served = createPredictor();
    const loader = createModelLoader({ store, predictor: served, log: createLog('silent'), metrics: new Registry() });
    await loader.load();
    assert.deepEqual(served.list(), [{ targetModel: 'm', id: 'm@1' }]);
    const [version] = await listModelVersions(store, 'm');
    const { source, parameters } = JSON.parse(version!.lineage) as {
      source: { observed: number; lastSampleId: number };
      parameters: object;
    };
    assert.equal(source.observed, 340);
    const [newest] = await listSamples(store, 'm', 1);
    assert.equal(source.lastSampleId, newest?.id, 'the next challenger is not judged by what this one knows');
    const { statistic, trees } = DEFAULT_TRAINING;
    assert.deepEqual(parameters, { ...parameters, statistic, ...trees }, 'a refit says by what it learned');
    assert.deepEqual((await listFreshSamples(store)).fresh, []);

    // Noise teaches nothing: the served model stays.
    const noise = observePool({ rows: 200, seed: 3 }).map((row, i) => ({
      ...row,
      ttftMs: 10 ** (i % 4),
      tpotMs: 10 ** ((i * 7) % 4),
    }));
    await sink.report(reportRows(noise.slice(0, 150)));
    await trainer.runRound();
    assert.equal((await listFreshSamples(store)).fresh[0]?.count, 150, 'neither enough rows nor time');
    trainer.requestTraining('m');
    await trainer.runRound();
    assert.equal(
      (await listFreshSamples(store)).fresh[0]?.count,
      150,
      'an alarm waits after a training, by how long it took',
    );
    world.moveMs(4 * TRAINING_MS);
    await trainer.runRound();
    assert.deepEqual((await listFreshSamples(store)).fresh, []);
    const text = await metrics.metrics();
    assert.match(text, /trivet_prediction_trainings_total\{model="m",outcome="published"\} [12]/);
    await trainer.stop();
  },
);
