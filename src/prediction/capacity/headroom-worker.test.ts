import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { countTurns } from '../../../test/support/basics/count-turns.ts';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { countRows } from '../../../test/support/store/count-rows.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { createLog } from '../../telemetry/log.ts';
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import { insertSampleStatements } from '../observations/sample-store.ts';
import { importTrees, placeImported } from '../registry/import-model.ts';
import type { Observation } from '../schema/observation.ts';
import { trainModel } from '../training/train-model.ts';
import { createHeadroomWorker, type HeadroomDependencies } from './headroom-worker.ts';
import type { LatencyLimits } from './search-rates.ts';

const never = new AbortController().signal;

async function readSeries(metrics: Registry, name: string): Promise<Record<string, number>> {
  const { values } = await metrics.getSingleMetric(name)!.get();
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.server), value]));
}

type Given = Pick<HeadroomDependencies, 'store' | 'world' | 'metrics' | 'readUnderWay'>;

const TPOT_LIMIT = { ttftMs: undefined, tpotMs: 27, quantile: 0.9 };

async function openWorker(rows: readonly Observation[], given: Given, limits: LatencyLimits = TPOT_LIMIT) {
  await addSamples(given.store, rows);
  const model = trainModel('m@1', tabulate(rows));
  return createHeadroomWorker({
    ...given,
    log: createLog('silent'),
    limits,
    outputTokens: 100,
    listModels: () => [{ targetModel: 'm', model }],
  });
}

async function addSamples(store: Store, rows: readonly Observation[]): Promise<void> {
  const ids = await store.makeIds(rows.length);
  await store.writeAll(
    insertSampleStatements(
      rows.map((observation, i) => ({ id: ids[i]!, observation: { ...observation, atMs: observation.atMs! } })),
    ),
  );
}

forEachEngine('a faster server has room for more, by its own numbers or by the newest report', async (store) => {
  const rows = observePool({ rows: 3000, servers: [1, 1.6] });
  const metrics = new Registry();
  const world = createStillWorld(rows.at(-1)!.atMs);
  const scraped = new Map([['10.0.0.0', 7]]);
  const worker = await openWorker(rows, { store, world, metrics, readUnderWay: (server) => scraped.get(server) });
  await worker.update(never);
  const capacity = await readSeries(metrics, 'trivet_prediction_capacity_requests');
  assert.ok(capacity['10.0.0.0']! > 2 * capacity['10.0.0.1']!, JSON.stringify(capacity));
  const headroom = await readSeries(metrics, 'trivet_prediction_headroom_requests');
  assert.equal(headroom['10.0.0.0'], capacity['10.0.0.0']! - 7);
  const newest = rows.findLast(({ input }) => input.serverIp === '10.0.0.1')!.input;
  const underWay = newest.numRequestWaiting + newest.numRequestRunning;
  assert.equal(headroom['10.0.0.1'], capacity['10.0.0.1']! - underWay);
  const used = await readSeries(metrics, 'trivet_prediction_capacity_used_ratio');
  assert.equal(used['10.0.0.0'], 7 / capacity['10.0.0.0']!);

  world.moveMs(120_000);
  assert.deepEqual(
    Object.keys(await readSeries(metrics, 'trivet_prediction_headroom_requests')),
    ['10.0.0.0'],
    'a report of two minutes ago says nothing of now',
  );
  world.moveMs(-240_000);
  assert.deepEqual(
    Object.keys(await readSeries(metrics, 'trivet_prediction_headroom_requests')),
    ['10.0.0.0'],
    'nor does one that is dated two minutes ahead',
  );
});

forEachEngine('few rows are read in a turn, and one server is worked out', async (store) => {
  const servers = Array.from({ length: 20 }, () => 1);
  const rows = observePool({ rows: 3000, servers });
  const counted = countRows(store);
  const given = { store: counted.store, world: createStillWorld(rows.at(-1)!.atMs), metrics: new Registry() };
  const worker = await openWorker(rows, { ...given, readUnderWay: () => undefined });
  const turns = await countTurns(worker.update(never));
  assert.equal(Object.keys(await readSeries(given.metrics, 'trivet_prediction_capacity_requests')).length, 20);
  assert.ok(counted.rows >= 3000 && counted.mostInTurn <= 251, `${counted.mostInTurn} rows in one turn`);
  // Each server has its samples joined, its curves fitted and its capacity found.
  assert.ok(turns >= 3000 / 250 + 3 * servers.length, `${turns} turns`);
});

forEachEngine(
  'the load of a server that is not scraped is that of its newest request, and is read often',
  async (store) => {
    const rows = observePool({ rows: 200 });
    const metrics = new Registry();
    const last = rows.at(-1)!;
    const world = createStillWorld(last.atMs);
    const worker = await openWorker(rows, { store, world, metrics, readUnderWay: () => undefined });
    const meet = (underWay: number, atMs: number): Observation => ({
      ...last,
      atMs,
      input: { ...last.input, numRequestWaiting: 0, numRequestRunning: underWay },
    });
    const readLoad = async () => {
      const [capacity, headroom] = await Promise.all(
        ['capacity', 'headroom'].map((name) => readSeries(metrics, `trivet_prediction_${name}_requests`)),
      );
      return capacity!['10.0.0.0']! - headroom!['10.0.0.0']!;
    };
    // The answer of an earlier request ends: its sample is the newest.
    await addSamples(store, [meet(7, last.atMs! + 1), { ...meet(1, last.atMs! - 50_000), ttftMs: undefined }]);
    await worker.update(never);
    assert.equal(await readLoad(), 7);
    // A wrong clock must not hide later requests.
    await addSamples(store, [meet(2, last.atMs! + 86_400_000)]);
    for (const [underWay, laterMs] of [
      [9, 40_000],
      [11, 90_000],
      [13, 140_000],
    ] as const) {
      world.moveMs(last.atMs! + laterMs - world.nowMs());
      await addSamples(store, [meet(underWay, world.nowMs()), meet(3, world.nowMs() - 30_000)]);
      await worker.updateLoads(never);
      assert.equal(await readLoad(), underWay);
    }
  },
);

forEachEngine('rows that another process with a clock ahead has dated hide no other server', async (store) => {
  const rows = observePool({ rows: 600, servers: [1, 1] });
  const metrics = new Registry();
  const last = rows.at(-1)!;
  const world = createStillWorld(last.atMs);
  const worker = await openWorker(rows, { store, world, metrics, readUnderWay: () => undefined });
  const on = (server: string, atMs: number): Observation => ({
    ...last,
    atMs,
    input: { ...last.input, serverIp: server, numRequestWaiting: 0, numRequestRunning: 3 },
  });
  const aheadMs = world.nowMs() + 600_000;
  await addSamples(
    store,
    Array.from({ length: 5000 }, (_, i) => on('10.0.0.0', aheadMs + i)),
  );
  await worker.update(never);
  const capacity = await readSeries(metrics, 'trivet_prediction_capacity_requests');
  assert.deepEqual(Object.keys(capacity).sort(), ['10.0.0.0', '10.0.0.1']);
  world.moveMs(90_000);
  await addSamples(store, [on('10.0.0.1', world.nowMs())]);
  await worker.updateLoads(never);
  const headroom = await readSeries(metrics, 'trivet_prediction_headroom_requests');
  assert.deepEqual(headroom, { '10.0.0.1': capacity['10.0.0.1']! - 3 });
});

forEachEngine('a server that never met two requests has room for more than it had', async (store) => {
  const metrics = new Registry();
  const rows = observePool({ rows: 600, servers: [1, 1] }).map((row) =>
    row.input.serverIp === '10.0.0.1'
      ? { ...row, input: { ...row.input, numRequestWaiting: 0, numRequestRunning: 0, kvCacheUsage: 0 }, tpotMs: 12 }
      : row,
  );
  const worker = await openWorker(rows, { store, world: createStillWorld(), metrics, readUnderWay: () => 0 });
  await worker.update(never);
  const headroom = await readSeries(metrics, 'trivet_prediction_headroom_requests');
  assert.equal(headroom['10.0.0.1'], 2);
  assert.ok(headroom['10.0.0.0']! > 2, JSON.stringify(headroom));
});

forEachEngine('a server that reports billions of requests under way has a headroom too', async (store) => {
  const metrics = new Registry();
  const most = 2 ** 31 - 1;
  const rows = observePool({ rows: 60 }).map((row) => ({
    ...row,
    input: { ...row.input, numRequestWaiting: most, numRequestRunning: most, kvCacheUsage: 0 },
  }));
  const given = { store, world: createStillWorld(), metrics, readUnderWay: () => 0 };
  const worker = await openWorker(rows, given, { ttftMs: 1e9, tpotMs: undefined, quantile: 0.9 });
  await worker.update(never);
  const capacity = await readSeries(metrics, 'trivet_prediction_capacity_requests');
  assert.deepEqual(capacity, { '10.0.0.0': 2 * (most + most) });
});

/** Trees of LightGBM that predict 100 ms for an idle server, and 100 more for each request that runs, up to 40. */
function importExactTrees(): LatencyModel {
  const nodes = [...Array(40).keys()];
  const list = (values: readonly (string | number)[]) => values.join(' ');
  const text = `tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=0
objective=regression
feature_names=num_request_running
feature_infos=[0:40]

Tree=0
num_leaves=41
num_cat=0
split_feature=${list(nodes.map(() => 0))}
threshold=${list(nodes.map((node) => node + 0.5))}
decision_type=${list(nodes.map(() => 2))}
left_child=${list(nodes.map((node) => -node - 1))}
right_child=${list(nodes.map((node) => (node === 39 ? -41 : node + 1)))}
leaf_value=${list([...nodes, 40].map((running) => 100 * (running + 1)))}
leaf_count=${list([...nodes, 40].map(() => 10))}
internal_count=${list(nodes.map(() => 20))}
shrinkage=1

end of trees
`;
  const settings = { features: new Map(), transform: 'identity', unit: 'ms' } as const;
  const trees = importTrees({ kind: 'LightGBM', text, ...settings });
  return placeImported(createPriorModel(), trees, { target: 'ttft', podType: undefined, statistic: 'p50' });
}

forEachEngine('imported trees that are right have the capacity that the samples show', async (store) => {
  const metrics = new Registry();
  const rows = observePool({ rows: 600, servers: [1, 2] }).map(({ input, ...row }, i): Observation => {
    const running = i % 41;
    const speed = input.serverIp === '10.0.0.1' ? 2 : 1;
    const ttftMs = speed * 100 * (running + 1) * (i % 2 === 0 ? 1.02 : 0.98);
    return { ...row, input: { ...input, numRequestWaiting: 0, numRequestRunning: running }, ttftMs };
  });
  await addSamples(store, rows);
  const worker = createHeadroomWorker({
    store,
    world: createStillWorld(),
    metrics,
    readUnderWay: () => 0,
    log: createLog('silent'),
    limits: { ttftMs: 3200, tpotMs: undefined, quantile: 0.9 },
    outputTokens: 100,
    listModels: () => [{ targetModel: 'm', model: importExactTrees() }],
  });
  await worker.update(never);
  const capacity = await readSeries(metrics, 'trivet_prediction_capacity_requests');
  // 102 ms for each request and one more are within the limit up to 30; twice as slow as the trees say, up to 14.
  assert.ok(Math.abs(capacity['10.0.0.0']! - 30) <= 1, JSON.stringify(capacity));
  assert.ok(Math.abs(capacity['10.0.0.1']! - 14) <= 1, JSON.stringify(capacity));
});

forEachEngine('the residuals of imported trees are measured one server in a turn', async (store) => {
  const servers = Array.from({ length: 20 }, () => 1);
  const rows = observePool({ rows: 3000, servers });
  await addSamples(store, rows);
  const worker = createHeadroomWorker({
    store,
    world: createStillWorld(),
    metrics: new Registry(),
    readUnderWay: () => 0,
    log: createLog('silent'),
    limits: { ttftMs: 3200, tpotMs: undefined, quantile: 0.9 },
    outputTokens: 100,
    listModels: () => [{ targetModel: 'm', model: importExactTrees() }],
  });
  const turns = await countTurns(worker.update(never));
  assert.ok(turns >= 3000 / 250 + 4 * servers.length, `${turns} turns`);
});

forEachEngine('servers whose waits are unknown have a headroom, though no capacity can be simulated', async (store) => {
  const metrics = new Registry();
  const rows = observePool({ rows: 200 }).map((row, i) => ({
    ...row,
    atMs: 1_700_000_000_000 + 60_000 * i,
    input: { ...row.input, numRequestWaiting: 1 },
  }));
  const worker = await openWorker(rows, { store, world: createStillWorld(), metrics, readUnderWay: () => 0 });
  await worker.update(never);
  const headroom = await readSeries(metrics, 'trivet_prediction_headroom_requests');
  assert.ok(headroom['10.0.0.0']! > 0, JSON.stringify(headroom));
});
