import assert from 'node:assert/strict';
import { recordTestAccuracy } from '../../../test/support/prediction/model-accuracy.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { readAccuracy } from './accuracy-operations.ts';
import { readSteps } from './accuracy-steps.ts';

const HOUR_MS = 3_600_000;
const NOW = Date.UTC(2026, 5, 1, 12, 30);
const world = { nowMs: () => NOW };
const ago = (hours: number): string => new Date(NOW - hours * HOUR_MS).toISOString();

forEachEngine('readSteps() gives the accuracy of a model in steps that the store keeps apart', async (store) => {
  await recordTestAccuracy(store, { name: 'm', nowMs: NOW });
  const read = (hours: number, server?: string) =>
    readSteps({ store, world }, { model: 'm', since: ago(hours), server });
  const shortly = await read(2);
  assert.deepEqual(readAccuracy.output.parse(shortly), shortly);
  assert.deepEqual(
    shortly.series.map(({ podType, target, points }) => [podType, target, points.length]),
    [
      ['', 'ttft', 24],
      ['', 'tpot', 24],
      ['prefill', 'ttft', 24],
    ],
  );
  assert.equal(shortly.stepMs, 300_000);
  const [point] = shortly.series[0]!.points;
  assert.deepEqual([point?.startMs, point?.version, point?.rows], [NOW - 2 * HOUR_MS, 2, 1]);
  assert.ok(Math.abs(point!.mape - 20) < 1e-9);
  const day = await read(24);
  assert.equal(day.stepMs, HOUR_MS);
  const versions = new Set(day.series[0]!.points.map(({ version }) => version));
  assert.deepEqual([...versions], [1, 2]);
  const ofServer = await read(24, '10.0.0.1');
  assert.deepEqual(Object.keys(ofServer.series[0]!), ['server', 'target', 'points']);
  assert.equal('version' in ofServer.series[0]!.points[0]!, false);
  assert.equal((await read(24 * 30)).stepMs, 6 * HOUR_MS);
});

forEachEngine(
  'readSteps() takes a time that a caller whose clock is ahead by less than a minute calls now',
  async (store) => {
    const read = (since: string) => readSteps({ store, world }, { model: 'm', since });
    await assert.rejects(read(ago(-1 / 120)), { code: 'not_found' });
    await assert.rejects(read(ago(-1 / 30)), { code: 'invalid', message: /since must not be in the future/ });
  },
);

forEachEngine('readSteps() refuses unknown models and times that it has nothing of', async (store) => {
  const read = (since?: string) => readSteps({ store, world }, { model: 'm', since });
  await assert.rejects(read(), { code: 'not_found', message: /there is no such model/ });
  await assert.rejects(read(ago(-1)), { code: 'invalid', message: /since must not be in the future/ });
  await assert.rejects(read(ago(24 * 31)), { code: 'invalid', message: /at most 30 days ago/ });
});
