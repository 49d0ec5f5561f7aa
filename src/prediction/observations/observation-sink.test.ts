import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { forEachEngine } from '../../../test/support/engines.ts';
import { observePool, tabulate } from '../../../test/support/observed-pool.ts';
import { createStillWorld } from '../../../test/support/still-world.ts';
import type { Store } from '../../database/store.ts';
import { createLog } from '../../telemetry/log.ts';
import { createObservationService } from '../api/observation-service.ts';
import { createTrainer } from '../learning/trainer-worker.ts';
import { createPredictor, SHARED_NAME, type SwappablePredictor } from '../online/predictor.ts';
import { createModelLoader } from '../registry/model-loader.ts';
import { listModelVersions } from '../registry/model-store.ts';
import { createPredictColumns, METRIC_COLUMNS } from '../schema/columns.ts';
import type {
  DispatchedEvent,
  FinishedEvent,
  FirstTokenEvent,
  ObservationEvent,
  WholeObservation,
} from '../schema/observation-event.ts';
import { listLiveStates } from '../sharing/live-state-store.ts';
import { createSharingWorker } from '../sharing/sharing-worker.ts';
import { DEFAULT_TRAINING, trainModel } from '../training/train-model.ts';
import { createObservationSink } from './observation-sink.ts';
import { sweepPendingRequests } from './observation-store.ts';
import { type FreshSamplesPage, listFreshSamples, listSampledModels } from './sample-count-store.ts';
import { createSampleKeeper } from './sample-keeper.ts';
import { listSamples, thinModelSamples } from './sample-store.ts';

const [observed] = observePool({ rows: 1 });
const { input } = observed!;
const dispatched: DispatchedEvent = { kind: 'dispatched', requestId: 'r1', targetModel: 'm', input, atMs: 1000 };
const firstToken: FirstTokenEvent = { kind: 'first_token', requestId: 'r1', ttftMs: 120, atMs: 1120 };
const finished: FinishedEvent = { kind: 'finished', requestId: 'r1', tpotMs: 20, outputTokens: 30, atMs: 1700 };
const whole: WholeObservation = {
  kind: 'observation',
  requestId: '',
  targetModel: 'm',
  input,
  atMs: 1,
  ttftMs: 5,
  tpotMs: 6,
  outputTokens: 2,
};

/** How long a training takes by the clock of the test. */
const TRAINING_MS = 1000;

function openSink(
  store: Store,
  predictor: SwappablePredictor = createPredictor(),
  onObserved: (targetModel: string) => void = () => {},
) {
  const drifted: string[] = [];
  const world = createStillWorld();
  const metrics = new Registry();
  const sharing = createSharingWorker({ store, world, log: createLog('silent'), metrics, predictor });
  const sink = createObservationSink({
    store,
    world,
    metrics,
    predictor,
    beforeObserve: (...observed) => sharing.beforeObserve(...observed),
    onDrift: (model) => drifted.push(model),
    onObserved,
  });
  return { sink, sharing, predictor, drifted, metrics, world };
}

async function listTimes(store: Store) {
  return (await listSamples(store, 'm', 100)).map(({ observation }) => [observation.ttftMs, observation.tpotMs]);
}

const orders: [title: string, events: readonly ObservationEvent[]][] = [
  ['in order', [dispatched, firstToken, finished]],
  ['with the dispatch last', [firstToken, finished, dispatched]],
  ['with the first token last', [dispatched, finished, firstToken]],
  ['each twice', [dispatched, dispatched, firstToken, firstToken, finished, finished]],
];
for (const [title, events] of orders)
  forEachEngine(`the events of a request make each time a sample once, ${title}`, async (store) => {
    const { sink } = openSink(store);
    for (const event of events) await sink.report([event]);
    const times = (await listTimes(store)).sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0));
    assert.deepEqual(times, [
      [undefined, 20],
      [120, undefined],
    ]);
    const [sample] = await listSamples(store, 'm', 1);
    assert.deepEqual(sample?.observation.input, input);
  });

forEachEngine('repeated events are refused by name, in one batch too, and the others are taken', async (store) => {
  const { sink } = openSink(store);
  const answer = await sink.report([
    dispatched,
    firstToken,
    dispatched,
    firstToken,
    { ...whole, requestId: 'w' },
    { ...whole, requestId: 'w' },
  ]);
  assert.deepEqual(answer, {
    accepted: 3,
    refusals: [
      { index: 2, reason: 'request_id "r1" was dispatched already' },
      { index: 3, reason: 'request_id "r1" had its first token already' },
      { index: 5, reason: 'request_id "w" was reported already' },
    ],
  });
});

forEachEngine(
  'of many target models a few keep a live state of their own, and the one of the others is kept too',
  async (store) => {
    const { sink, sharing, predictor, world, metrics } = openSink(store);
    const names = Array.from({ length: 600 }, (_, index) => `m${index}`);
    await sink.report(names.map((targetModel) => ({ ...whole, targetModel })));
    await sharing.stop();
    const saved = await listLiveStates(store);
    assert.equal(saved.length, 257);
    assert.equal(saved[0]?.targetModel, SHARED_NAME);

    const restarted = createPredictor();
    const dependencies = { store, world, log: createLog('silent'), metrics: new Registry() };
    await createSharingWorker({ ...dependencies, predictor: restarted }).restore();
    for (const name of ['m0', 'm599'])
      assert.deepEqual(restarted.live(name).save().recent, predictor.live(name).save().recent, name);
    const text = await metrics.metrics();
    assert.equal(text.match(/^trivet_prediction_observed_total\{model="m/gm)?.length, 2 * 256);
    assert.match(text, /^trivet_prediction_observed_total\{model="\(others\)",target="ttft"\} 344$/m);
  },
);

forEachEngine('a round of the trainer looks first at the models that are reported often', async (store, { place }) => {
  const { sink, world, metrics } = openSink(store);
  const onTrained = async () => {};
  const options = { refitRows: 200, refitSeconds: 3600, log: createLog('silent'), onTrained };
  const trainer = createTrainer({ store, place, world, metrics, ...options });
  // A round looks at 1,024 models by name.
  const names = Array.from({ length: 1100 }, (_, index) => `m${index}`);
  for (let first = 0; first < names.length; first += 100)
    await sink.report(names.slice(first, first + 100).map((targetModel) => ({ ...whole, targetModel })));
  await sink.report(observePool({ rows: 60 }).map((row) => ({ ...whole, input: row.input, targetModel: 'z' })));
  for (const name of names) trainer.countObserved(name);
  for (let i = 0; i < 60; i++) trainer.countObserved('z');
  await trainer.runRound();
  assert.deepEqual((await listFreshSamples(store, 'y')).fresh, []);
  await trainer.stop();
});

forEachEngine(
  'a round of the trainer goes on where the last one ended, so that every model gets its turn',
  async (store, { place }) => {
    const { sink, world, metrics } = openSink(store);
    const onTrained = async () => {};
    const options = { refitRows: 200, refitSeconds: 3600, log: createLog('silent'), onTrained };
    const trainer = createTrainer({ store, place, world, metrics, ...options });
    // A round looks at 1,024 models. By name, the one that is due is behind all of them.
    const names = Array.from({ length: 1100 }, (_, index) => `m${index}`);
    for (let first = 0; first < names.length; first += 100)
      await sink.report(names.slice(first, first + 100).map((targetModel) => ({ ...whole, targetModel })));
    await sink.report(observePool({ rows: 60 }).map((row) => ({ ...whole, input: row.input, targetModel: 'z' })));
    const trained = async () => (await listFreshSamples(store, 'y')).fresh.length === 0;
    await trainer.runRound();
    assert.equal(await trained(), false);
    await trainer.runRound();
    assert.equal(await trained(), true);
    await trainer.stop();
  },
);

forEachEngine('fresh samples are listed by pages, every target model once', async (store) => {
  const { sink } = openSink(store);
  const names = Array.from({ length: 200 }, (_, index) => `m${index}`);
  await sink.report(names.map((targetModel) => ({ ...whole, targetModel })));
  const listed: string[] = [];
  let pages = 0;
  for (let after: string | undefined = ''; after !== undefined; pages++) {
    const page: FreshSamplesPage = await listFreshSamples(store, after);
    listed.push(...page.fresh.map(({ targetModel }) => targetModel));
    after = page.last;
  }
  assert.deepEqual(listed.toSorted(), names.toSorted());
  assert.equal(pages, 4);
  assert.deepEqual((await Array.fromAsync(listSampledModels(store))).toSorted(), names.toSorted());
});

forEachEngine('an event with a text that no store keeps is refused alone, the others are stored', async (store) => {
  const { sink, world } = openSink(store);
  const service = createObservationService({ sink, world });
  const event = { targetModel: 'm', input: { inputTokenLength: 1 }, ttftMillis: 5 };
  const report = await service.reportJson([
    { observation: event },
    { observation: { ...event, requestId: 'a\0' } },
    { observation: { ...event, targetModel: 'm\0' } },
    { observation: { ...event, input: { podType: '\0' } } },
    { observation: { ...event, input: { serverIp: '10.0.0.1\0' } } },
    { observation: event },
  ]);
  assert.deepEqual(
    report.refusals.map(({ index, reason }) => [index, reason]),
    ['request_id', 'target_model', 'input.pod_type', 'input.server_ip'].map((field, at) => [
      at + 1,
      `${field} must not contain the character NUL`,
    ]),
  );
  assert.equal(report.accepted, 2);
  assert.equal((await listSamples(store, 'm', 100)).length, 2);
});

forEachEngine('impossible times are refused with their position, whatever stands around them', async (store) => {
  const { sink } = openSink(store);
  const answer = await sink.report([whole, { ...whole, ttftMs: 1e12 }, { ...whole, tpotMs: 9e7 }, whole]);
  assert.deepEqual(
    answer.refusals.map(({ index, reason }) => [index, reason.split(',')[0]]),
    [
      [1, 'ttft_millis must be at most one day'],
      [2, 'tpot_millis must be at most one day'],
    ],
  );
  assert.equal((await listTimes(store)).length, 2);
});

forEachEngine('events of one request that two processes received are joined', async (store, { openAnother }) => {
  await openSink(await openAnother()).sink.report([dispatched]);
  await openSink(store).sink.report([firstToken]);
  assert.deepEqual(await listTimes(store), [[120, undefined]]);
});

forEachEngine('requests without further events are forgotten, and counted unless they were complete', async (store) => {
  const { sink, world } = openSink(store);
  await sink.report([dispatched, firstToken, finished, { ...dispatched, requestId: 'lost' }]);
  const later = world.nowMs() + 1;
  assert.equal(await sweepPendingRequests(store, { completeBeforeMs: later, incompleteBeforeMs: later - 1000 }), 0);
  assert.equal(await sweepPendingRequests(store, { completeBeforeMs: later, incompleteBeforeMs: later }), 1);
});

forEachEngine('thinning keeps the newest rows, and of older ones some of every server', async (store) => {
  const { sink } = openSink(store);
  const on = (serverIp: string): WholeObservation => ({ ...whole, input: { ...input, serverIp } });
  await sink.report([on('rare')]);
  await sink.report(Array.from({ length: 60 }, () => on('busy')));
  await sink.report(Array.from({ length: 5 }, () => on('new')));
  await thinModelSamples(store, 'm', { newest: 10, perServerAndLoadClass: 7, perLoadClass: 40 });
  const servers = (await listSamples(store, 'm', 100)).map(({ observation }) => observation.input.serverIp);
  const count = (name: string) => servers.filter((server) => server === name).length;
  assert.deepEqual([count('rare'), count('busy'), count('new')], [1, 7, 5]);
});

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

const report = (rows: ReturnType<typeof observePool>): ObservationEvent[] =>
  rows.map((row) => ({
    kind: 'observation',
    requestId: '',
    targetModel: 'm',
    input: row.input,
    atMs: row.atMs!,
    ttftMs: row.ttftMs,
    tpotMs: row.tpotMs,
    outputTokens: 1,
  }));

forEachEngine(
  'a server that turns slow is answered as slow, the others stay as they were, also after a restart',
  async (store) => {
    const { sink, sharing, predictor, world } = openSink(store);
    predictor.swap('m', trainModel('m@1', tabulate(observePool({ rows: 600, servers: [1, 1, 1] }))));
    const at = (serverIp: string, on = predictor) => predictOne(on, { ...input, serverIp });
    const before = at('10.0.0.1');
    await sink.report(report(observePool({ rows: 150, seed: 5, servers: [1, 2.5, 1] })));
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
    await sink.report(report(observePool({ rows: 40 })));
    await trainer.runRound();
    assert.equal((await listFreshSamples(store)).fresh[0]?.count, 40, 'too few to learn from');

    await sink.report(report(observePool({ rows: 300, seed: 2 })));
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
    await sink.report(report(noise.slice(0, 150)));
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

forEachEngine(
  'samples are thinned and counted by load, whichever process added them, with learning on or off',
  async (store) => {
    const metrics = new Registry();
    const { sink, world } = openSink(store);
    const keeper = createSampleKeeper({ store, world, log: createLog('silent'), metrics });
    await sink.report(Array.from({ length: 30 }, () => ({ ...whole, requestId: '' })));
    const busy = { ...input, numRequestWaiting: 9 };
    await sink.report(Array.from({ length: 5 }, () => ({ ...whole, requestId: '', input: busy })));
    assert.deepEqual(await Array.fromAsync(listSampledModels(store)), ['m']);
    await keeper.thin('m');
    const gauge = await metrics.getSingleMetric('trivet_prediction_samples')!.get();
    const counted = gauge.values.map(({ labels, value }) => [labels.model, labels.waiting, value]);
    assert.deepEqual(
      counted.sort((a, b) => Number(a[2]) - Number(b[2])),
      [
        ['m', '8-64', 5],
        ['m', '0-1', 30],
      ],
    );
  },
);

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
