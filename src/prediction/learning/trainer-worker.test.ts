import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { openSink, reportRows, whole } from '../../../test/support/prediction/observation-sink.ts';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine, type StorePlace } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { createLog } from '../../telemetry/log.ts';
import { listFreshSamples } from '../observations/sample-count-store.ts';
import { listSamples } from '../observations/sample-store.ts';
import { createPredictor } from '../online/predictor.ts';
import { createModelLoader } from '../registry/model-loader.ts';
import { listModelVersions } from '../registry/model-store.ts';
import { DEFAULT_TRAINING } from '../training/train-model.ts';
import { createTrainer, createTrainingCounter, type TrainerDependencies } from './trainer-worker.ts';

/** How long a training takes by the clock of the test. */
const TRAINING_MS = 1000;
const DAY_MS = 86_400_000;

test('trainings of more than 256 models are counted, those of further models together', async () => {
  const metrics = new Registry();
  const count = createTrainingCounter(metrics);
  for (let index = 0; index < 300; index++) count(`m${index}`, 'kept');
  const { values } = await metrics.getSingleMetric('trivet_prediction_trainings_total')!.get();
  assert.deepEqual([values.length, values.at(-1)?.labels.model, values.at(-1)?.value], [257, '(others)', 44]);
});

/** The first query with this name fails. */
function failOnce(store: Store, name: string): Store {
  let isBroken = true;
  const read: Store['read'] = async (query, parameters) => {
    if (!isBroken || query.name !== name) return await store.read(query, parameters);
    isBroken = false;
    throw new Error('the database is away');
  };
  return { ...store, read };
}

/** A round checks 1,024 models by name, and the one that is due comes after all of them. */
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

/** Collects the trainings that failed: `MODEL: MESSAGE`. */
function createFailureLog() {
  const failures: string[] = [];
  const write = (line: string): void => {
    const { model, err } = JSON.parse(line) as { model: string; err: { message: string } };
    failures.push(`${model}: ${err.message}`);
  };
  return { log: createLog('error', { write }), failures };
}

forEachEngine(
  'a training that fails keeps neither the other models of its round nor those of later rounds waiting',
  async (store, { place }) => {
    const { sink, world, metrics } = openSink(store);
    const { log, failures } = createFailureLog();
    const trained: string[] = [];
    const onTrained = async (targetModel: string) => {
      if (targetModel !== 'z') throw new Error('broken');
      trained.push(targetModel);
    };
    const trainer = createTrainer({ store, place, world, metrics, log, refitRows: 200, refitSeconds: 3600, onTrained });
    const rows = observePool({ rows: 60 });
    for (const targetModel of ['a', 'often', 'z'])
      await sink.report(rows.map((row) => ({ ...whole, input: row.input, targetModel })));
    for (let i = 0; i < 60; i++) trainer.countObserved('often');
    await trainer.runRound();
    assert.deepEqual(failures, ['often: broken', 'a: broken']);
    assert.deepEqual(trained, ['z']);
    await trainer.stop();
  },
);

forEachEngine(
  'after a training that failed, its model waits four times as long as it took, and the request of an alarm stays',
  async (store, { place }) => {
    const { sink, world, metrics } = openSink(store);
    const { log, failures } = createFailureLog();
    let isBroken = true;
    const onTrained = async () => {
      world.moveMs(TRAINING_MS);
      if (isBroken) throw new Error('broken');
    };
    const trainer = createTrainer({ store, place, world, metrics, log, refitRows: 100, refitSeconds: 3600, onTrained });
    const reportAndTrain = async (rows: number) => {
      await sink.report(reportRows(observePool({ rows })));
      await trainer.runRound();
    };
    trainer.requestTraining('m');
    await reportAndTrain(60);
    assert.equal(failures.length, 1);
    await reportAndTrain(120);
    assert.equal(failures.length, 1, 'enough rows, but it waits');
    world.moveMs(4 * TRAINING_MS);
    await trainer.runRound();
    assert.equal(failures.length, 2);
    isBroken = false;
    world.moveMs(4 * TRAINING_MS);
    await reportAndTrain(60);
    assert.deepEqual((await listFreshSamples(store)).fresh, [], 'trained on the request: too few rows otherwise');
    await trainer.stop();
  },
);

forEachEngine(
  'a model that is reported often is looked at first again if the database failed in the round that looked at it',
  async (store, { place }) => {
    const { trainer: broken } = await startCrowdedTrainer(failOnce(store, 'sample-count-fresh-of-model'), place);
    for (let i = 0; i < 60; i++) broken.countObserved('z');
    await assert.rejects(broken.runRound(), /the database is away/);
    await broken.runRound();
    assert.deepEqual((await listFreshSamples(store, 'y')).fresh, []);
    await broken.stop();
  },
);

forEachEngine(
  'a training that does not end in time is ended, gives its lease back, and is done again in a later round',
  async (store, { place }) => {
    const { sink, world } = openSink(store);
    const options = { refitRows: 200, refitSeconds: 3600, log: createLog('silent'), onTrained: async () => {} };
    await sink.report(reportRows(observePool({ rows: 200 })));
    const open = (limit: Partial<TrainerDependencies> = {}) =>
      createTrainer({ store, place, world, metrics: new Registry(), ...options, ...limit });
    const { log, failures } = createFailureLog();
    const hanging = open({ maxTrainingMs: 1, log });
    await hanging.runRound();
    await hanging.stop();
    assert.equal(failures.length, 1);
    assert.match(failures[0]!, /^m: Cannot train the model "m": it took longer than 0\.001 s/);
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
    const log = createLog('silent');
    const loader = createModelLoader({ store, world, predictor: served, log, metrics: new Registry() });
    await loader.load();
    assert.deepEqual(served.list(), [{ targetModel: 'm', id: 'm@1' }]);
    const [version] = await listModelVersions(store, 'm');
    const { source, parameters } = JSON.parse(version!.lineage) as {
      source: { observed: number; lastSampleId: number };
      parameters: object;
    };
    assert.equal(source.observed, 340);
    const [newest] = await listSamples(store, 'm', { limit: 1 });
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
