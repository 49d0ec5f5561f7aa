import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { auditChange } from '../../../test/support/basics/audited-changes.ts';
import { countTurns } from '../../../test/support/basics/count-turns.ts';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { isFailure } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { createAccuracyWorker } from '../live-accuracy/accuracy-worker.ts';
import { createPriorModel } from '../model/model.ts';
import { checksumOf, encodeModel } from '../model/model-codec.ts';
import { LOADS, loadClassOf, splitLoadClass } from '../observations/load-class.ts';
import { createObservationSink } from '../observations/observation-sink.ts';
import { insertSampleStatements } from '../observations/sample-store.ts';
import { createPredictor } from '../online/predictor.ts';
import { DEFAULT_TRAINING, trainModel } from '../training/train-model.ts';
import { createConsoleModels } from './console-models.ts';
import { countSamples } from './console-models-store.ts';
import { createModelLoader } from './model-loader.ts';
import { saveModelVersion, takeVersionNumber } from './model-store.ts';
import { packModel, publishModel } from './publish-model.ts';

const ADA = { id: '1'.repeat(24), login: 'ada' };
const rows = observePool({ rows: 200, servers: [1, 2] });
const model = trainModel('m@1', tabulate(rows));

function openAdmin(store: Store) {
  const world = createStillWorld();
  const predictor = createPredictor();
  const accuracy = createAccuracyWorker({
    store,
    world,
    log: createLog('silent'),
    metrics: new Registry(),
    isClockTrusted: () => true,
  });
  const sink = createObservationSink({
    store,
    world,
    metrics: new Registry(),
    predictor,
    onAnswered: (row) => accuracy.observe(row),
    onDrift: () => {},
    onObserved: () => {},
  });
  const loader = createModelLoader({ store, world, predictor, log: createLog('silent'), metrics: new Registry() });
  return { world, sink, loader, accuracy, admin: createConsoleModels({ store, world, predictor, auditChange }) };
}

async function saveVersion(store: Store, name: string): Promise<number> {
  const version = await takeVersionNumber(store, name);
  const file = encodeModel({ ...model, id: `${name}@${version}` });
  const lineage = JSON.stringify({ source: { rows: 200 }, learned: [] });
  const facts = { parentVersion: undefined, createdAtMs: 5, checksum: checksumOf(file), lineage };
  await saveModelVersion(store, { name, version, file, ...facts });
  return version;
}

function reports(count: number) {
  return rows.slice(0, count).map((row, index) => ({
    ...row,
    kind: 'observation' as const,
    requestId: `r${index}`,
    atMs: index,
    outputTokens: 9,
  }));
}

forEachEngine('versions are shown with what they came from, promoted and rolled back', async (store) => {
  const { admin } = openAdmin(store);
  await saveVersion(store, 'm');
  await saveVersion(store, 'm');
  await admin.promote('m', 1, ADA);
  assert.equal((await admin.readModel('m')).previous, undefined);
  await admin.promote('m', 2, ADA);
  const shown = await admin.readModel('m');
  assert.deepEqual([shown.servedVersion, shown.previous, shown.versionCount], [2, 1, 2]);
  assert.deepEqual(
    shown.versions.map(({ id, isPromoted, source }) => ({ id, isPromoted, source })),
    [
      { id: 'm@2', isPromoted: true, source: { rows: 200 } },
      { id: 'm@1', isPromoted: false, source: { rows: 200 } },
    ],
  );
  for (const wrong of [2, 9])
    await assert.rejects(admin.rollBack('m', wrong, ADA), (error) => isFailure(error) && error.code === 'conflict');
  await admin.rollBack('m', 1, ADA);
  const after = await admin.readModel('m');
  assert.deepEqual([after.servedVersion, after.previous], [1, undefined]);
  assert.deepEqual(
    after.promotions.map(({ version, reason, undoneAtMs }) => [version, reason, undoneAtMs !== null]),
    [
      [2, 'promoted by ada', true],
      [1, 'promoted by ada', false],
    ],
  );
  for (const refused of [() => admin.promote('m', 9, ADA), () => admin.readModel('missing')])
    await assert.rejects(refused, (error) => isFailure(error) && error.code === 'not_found');
  await assert.rejects(admin.rollBack('m', 1, ADA), (error) => isFailure(error) && error.code === 'conflict');
});

forEachEngine('a version says by what it was learned, unless nothing of it was learned here', async (store) => {
  const { admin } = openAdmin(store);
  const publication = { name: 'm', source: {}, promotion: 'keep', reason: 'a test', nowMs: 7 } as const;
  await publishModel(store, { ...publication, packed: packModel(model) });
  await publishModel(store, { ...publication, packed: packModel(createPriorModel()) });
  const [prior, learned] = (await admin.readModel('m')).versions;
  const { trees, depth, learningRate, l2, loss, splitClip } = DEFAULT_TRAINING.trees;
  const expected = { statistic: 'p50', trees, depth, learningRate, l2, loss, splitClip };
  assert.deepEqual(learned?.parameters, { ...learned?.parameters, ...expected });
  assert.deepEqual(prior?.parameters, {});
});

forEachEngine('versions that are kept without being served do not pile up', async (store) => {
  const { admin } = openAdmin(store);
  const publication = { name: 'm', source: {}, reason: 'a test', nowMs: 7, packed: packModel(createPriorModel()) };
  await publishModel(store, { ...publication, promotion: 'promote' });
  for (let i = 0; i < 22; i++) await publishModel(store, { ...publication, promotion: 'keep' });
  const kept = (await admin.readModel('m')).versions.map(({ version }) => version);
  assert.deepEqual(kept, [...Array.from({ length: 20 }, (_, i) => 23 - i), 1]);
});

forEachEngine('what was observed shows as accuracy by slot and server, and as samples by load', async (store) => {
  const { admin, sink, loader, accuracy } = openAdmin(store);
  await saveVersion(store, 'm');
  await admin.promote('m', 1, ADA);
  await loader.load();
  await sink.report(reports(100));
  await accuracy.save();
  const shown = await admin.readModel('m');
  assert.deepEqual([shown.samples, shown.servedId], [100, 'm@1']);
  assert.deepEqual(
    shown.podTypes.map(({ podType, target, scores }) => [podType, target, scores.rows]),
    [
      ['', 'ttft', 100],
      ['', 'tpot', 100],
    ],
  );
  assert.ok(shown.podTypes.every(({ scores }) => scores.mape > 0 && scores.mape < 100 && scores.p90Coverage > 50));
  const servers = [...new Set(rows.map((row) => row.input.serverIp))].sort();
  assert.deepEqual(
    shown.servers.map(({ server }) => server),
    servers,
  );
  const [fast, slow] = shown.servers.map(({ factors }) => factors.ttft!);
  assert.ok(slow! / fast! > 1.5, 'the slow server has the higher factor');
  for (const { counts } of shown.loads)
    assert.equal(
      counts.reduce((sum, count) => sum + count),
      100,
    );
  const waiting = rows.slice(0, 100).filter((row) => row.input.numRequestWaiting < 1).length;
  assert.equal(shown.loads[0]?.counts[0], waiting);
  await sink.report(reports(1).map((row) => ({ ...row, requestId: 'other', targetModel: 'unknown' })));
  assert.deepEqual(
    (await admin.listModels()).map(({ name, samples }) => [name, samples]),
    [
      ['m', 100],
      ['unknown', 1],
    ],
  );
});

test('every load class is taken apart as it was put together', () => {
  for (const { input } of rows) {
    const values = [input.numRequestWaiting, input.kvCacheUsage, input.prefixCacheScore, input.inputTokenLength];
    const reached = LOADS.map(({ edges }, position) => edges.filter((edge) => values[position]! >= edge).length);
    assert.deepEqual(splitLoadClass(loadClassOf(input)), reached);
  }
});

forEachEngine('the loads of a model are those of the samples with the latest times up to now', async (store) => {
  const { admin, world } = openAdmin(store);
  await saveVersion(store, 'm');
  const at = (atMs: number, numRequestWaiting: number) => ({
    ...rows[0]!,
    atMs,
    input: { ...rows[0]!.input, numRequestWaiting },
  });
  const observed = [
    ...Array.from({ length: 10_000 }, () => at(world.nowMs(), 0)),
    ...Array.from({ length: 100 }, () => at(world.nowMs() - 86_400_000, 9)),
    ...Array.from({ length: 100 }, () => at(world.nowMs() + 600_000, 99)),
  ];
  const ids = await store.makeIds(observed.length);
  await store.writeAll(insertSampleStatements(observed.map((observation, i) => ({ id: ids[i]!, observation }))));
  const [waiting] = (await admin.readModel('m')).loads;
  assert.deepEqual([waiting?.field, waiting?.counts[0]], ['num_request_waiting', 10_000]);
});

forEachEngine('the samples of all models are counted, few models in a turn', async (store) => {
  const names = Array.from({ length: 10 }, (_, index) => `m${index}`);
  const ids = await store.makeIds(2 * names.length);
  const samples = ids.map((id, index) => {
    const observation = { ...rows[index]!, targetModel: names[index >> 1]!, atMs: index };
    return { id, observation };
  });
  await store.writeAll(insertSampleStatements(samples));
  const counting = countSamples(store);
  assert.ok((await countTurns(counting)) >= 2, 'turns between three reads');
  assert.deepEqual(
    [...(await counting)],
    names.map((name) => [name, 2]),
  );
});
