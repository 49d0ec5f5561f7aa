import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { forEachEngine } from '../../../test/support/engines.ts';
import { observePool, tabulate } from '../../../test/support/observed-pool.ts';
import { createStillWorld } from '../../../test/support/still-world.ts';
import { createLog } from '../../telemetry/log.ts';
import { insertSampleStatement } from '../observations/sample-store.ts';
import { trainModel } from '../training/train-model.ts';
import { createHeadroomWorker } from './headroom-worker.ts';

const never = new AbortController().signal;

async function readSeries(metrics: Registry, name: string): Promise<Record<string, number>> {
  const { values } = await metrics.getSingleMetric(name)!.get();
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.server), value]));
}

forEachEngine('a faster server has room for more, by its own numbers or by the newest report', async (store) => {
  const rows = observePool({ rows: 3000, servers: [1, 1.6] });
  const ids = await store.makeIds(rows.length);
  await store.writeAll(
    rows.map((observation, i) =>
      insertSampleStatement({ id: ids[i]!, observation: { ...observation, atMs: observation.atMs! } }),
    ),
  );
  const metrics = new Registry();
  const world = createStillWorld(rows.at(-1)!.atMs);
  const model = trainModel('m@1', tabulate(rows));
  const scraped = new Map([['10.0.0.0', 7]]);
  const worker = createHeadroomWorker({
    store,
    world,
    log: createLog('silent'),
    metrics,
    limits: { ttftMs: undefined, tpotMs: 27, quantile: 0.9 },
    outputTokens: 100,
    listModels: () => [{ targetModel: 'm', model }],
    readUnderWay: (server) => scraped.get(server),
  });
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
});
