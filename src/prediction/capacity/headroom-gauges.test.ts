import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { createHeadroomGauges } from './headroom-worker.ts';

async function readSeries(metrics: Registry, name: string): Promise<Record<string, number>> {
  const { values } = await metrics.getSingleMetric(name)!.get();
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.server), value]));
}

test('a server has series of its own, however many servers were shown before it, and 1,024 are shown at most', async () => {
  const metrics = new Registry();
  const name = (server: string) => ({ targetModel: 'm', server, capacity: 8, underWay: 2 });
  let servers = Array.from({ length: 1100 }, (_, index) => name(`pod-${index}`));
  createHeadroomGauges(metrics, () => servers);
  const gauges = ['capacity_requests', 'headroom_requests', 'capacity_used_ratio'].map(
    (gauge) => `trivet_prediction_${gauge}`,
  );
  for (const gauge of gauges) assert.equal(Object.keys(await readSeries(metrics, gauge)).length, 1024);
  servers = [name('new-1'), name('new-2')];
  for (const gauge of gauges) assert.deepEqual(Object.keys(await readSeries(metrics, gauge)), ['new-1', 'new-2']);
});

test('models share the 1,024 series of a gauge, and servers without a load leave theirs', async () => {
  const metrics = new Registry();
  const servers = Array.from({ length: 2000 }, (_, index) => ({
    targetModel: `m${index}`,
    server: 's',
    capacity: 8,
    underWay: index < 1000 ? undefined : 2,
  }));
  createHeadroomGauges(metrics, () => servers);
  const listModels = async (gauge: string) =>
    (await metrics.getSingleMetric(gauge)!.get()).values.map(({ labels }) => String(labels.model));
  assert.equal((await listModels('trivet_prediction_capacity_requests')).length, 1024);
  assert.deepEqual(
    await listModels('trivet_prediction_headroom_requests'),
    servers.slice(1000).map(({ targetModel }) => targetModel),
  );
});
