/** Several processes and people change one model at once. */
import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { saveTestVersion } from '../../../test/support/prediction/model-versions.ts';
import { openSink, reportRows } from '../../../test/support/prediction/observation-sink.ts';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { createLog } from '../../telemetry/log.ts';
import { listFreshSamples } from '../observations/sample-count-store.ts';
import { listModelVersions, promoteModel } from '../registry/model-store.ts';
import { createTrainer } from './trainer-worker.ts';

const REFIT = { refitRows: 200, refitSeconds: 3600, log: createLog('silent'), onTrained: async () => {} };

/** Before the first write with this name, `act` runs. */
function interpose(store: Store, name: string, act: () => Promise<unknown>): Store {
  let isDone = false;
  const write: Store['write'] = async (query, parameters) => {
    if (!isDone && query.name === name) {
      isDone = true;
      await act();
    }
    return await store.write(query, parameters);
  };
  return { ...store, write };
}

/** After the first read with this name, and before its rows are returned, `act` runs. */
function afterRead(store: Store, name: string, act: () => Promise<unknown>): Store {
  let isDone = false;
  const read: Store['read'] = async (query, parameters) => {
    const rows = await store.read(query, parameters);
    if (!isDone && query.name === name) {
      isDone = true;
      await act();
    }
    return rows;
  };
  return { ...store, read };
}

forEachEngine(
  'a version that is promoted during a training stays served, and the new one is kept',
  async (store, { place }) => {
    const { sink, world, metrics } = openSink(store);
    const version = await saveTestVersion(store, 'm');
    const promote = () => promoteModel(store, { name: 'm', version, nowMs: 1, reason: 'promoted by hand' });
    const promoting = interpose(store, 'model-take-number', promote);
    const trainer = createTrainer({ store: promoting, place, world, metrics, ...REFIT });
    await sink.report(reportRows(observePool({ rows: 200 })));
    await trainer.runRound();
    await trainer.stop();
    const versions = await listModelVersions(store, 'm');
    assert.deepEqual(
      versions.map((one) => [one.version, one.isPromoted]),
      [
        [version + 1, false],
        [version, true],
      ],
    );
    assert.match(await metrics.metrics(), /trainings_total\{model="m",outcome="overtaken"\} 1/);
  },
);

forEachEngine(
  'a model that another process has trained since its rows were counted is not trained again',
  async (store, { place, openAnother }) => {
    const { sink, world, metrics } = openSink(store);
    await sink.report(reportRows(observePool({ rows: 200 })));
    const first = createTrainer({ store, place, world, metrics, ...REFIT });
    const late = afterRead(await openAnother(), 'sample-count-fresh', () => first.runRound());
    const secondMetrics = new Registry();
    const second = createTrainer({ store: late, place, world, metrics: secondMetrics, ...REFIT });
    await second.runRound();
    await first.stop();
    await second.stop();
    assert.match(await metrics.metrics(), /trainings_total\{model="m",outcome="published"\} 1/);
    assert.doesNotMatch(await secondMetrics.metrics(), /trainings_total\{/);
  },
);

forEachEngine(
  'samples that came between the count and the training are trained on, and are no longer fresh',
  async (store, { place }) => {
    const { sink, world, metrics } = openSink(store);
    const report = (rows: number) => sink.report(reportRows(observePool({ rows })));
    await report(200);
    const counted = afterRead(store, 'sample-count-fresh-of-model', () => report(60));
    const trainer = createTrainer({ store: counted, place, world, metrics, ...REFIT });
    await trainer.runRound();
    await trainer.stop();
    const [version] = await listModelVersions(store, 'm');
    assert.equal((JSON.parse(version!.lineage) as { source: { observed: number } }).source.observed, 260);
    assert.deepEqual((await listFreshSamples(store)).fresh, []);
  },
);

forEachEngine(
  'a training answers the alarms of all processes that were raised before it',
  async (store, { place, openAnother }) => {
    const { sink, world, metrics } = openSink(store);
    const report = (rows: number) => sink.report(reportRows(observePool({ rows })));
    const countFresh = async () => (await listFreshSamples(store)).fresh[0]?.count;
    const first = createTrainer({ store, place, world, metrics, ...REFIT });
    const another = await openAnother();
    const second = createTrainer({ store: another, place, world, metrics: new Registry(), ...REFIT });
    await report(200);
    await first.runRound();
    await report(40);
    world.moveMs(1000);
    for (const trainer of [first, second]) trainer.requestTraining('m');
    await second.runRound();
    assert.equal(await countFresh(), 40, 'too few to learn from');
    await report(20);
    await first.runRound();
    assert.equal(await countFresh(), undefined, 'trained on the request');
    await report(60);
    await second.runRound();
    assert.equal(await countFresh(), 60, 'its request is answered');
    second.requestTraining('m');
    await second.runRound();
    assert.equal(await countFresh(), undefined, 'an alarm after the training is a new one');
    await first.stop();
    await second.stop();
  },
);
