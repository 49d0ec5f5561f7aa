import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { countTurns } from '../../../test/support/basics/count-turns.ts';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { isFailure } from '../../errors.ts';
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import { createObservationSink } from '../observations/observation-sink.ts';
import { listSamples } from '../observations/sample-store.ts';
import { createPredictor } from '../online/predictor.ts';
import { trainModel } from '../training/train-model.ts';
import { compareVersions } from './compare-versions.ts';
import { packModel, publishModel } from './publish-model.ts';

const NOW_MS = Date.UTC(2026, 0, 15, 12);
const rows = observePool({ rows: 400, servers: [1, 2] });
const trained = trainModel('m@1', tabulate(rows.slice(0, 200)));

async function publish(store: Store, model: LatencyModel, lastSampleId?: number): Promise<void> {
  const source = lastSampleId === undefined ? {} : { lastSampleId };
  await publishModel(store, {
    name: 'm',
    packed: packModel(model),
    source,
    reason: 'a test',
    nowMs: 7,
    promotion: 'keep',
  });
}

async function report(store: Store, from: number, to: number): Promise<number> {
  const sink = createObservationSink({
    store,
    world: createStillWorld(),
    metrics: new Registry(),
    predictor: createPredictor(),
    onDrift: () => {},
    onObserved: () => {},
  });
  const events = rows.slice(from, to).map((row, index) => ({
    ...row,
    targetModel: 'm',
    kind: 'observation' as const,
    requestId: `r${from + index}`,
    atMs: 1000 + from + index,
    outputTokens: 9,
  }));
  const { accepted } = await sink.report(events);
  assert.equal(accepted, to - from);
  return (await listSamples(store, 'm', { limit: 1 }))[0]!.id;
}

forEachEngine('two versions predict the same samples that neither has learned from', async (store) => {
  const lastLearned = await report(store, 0, 200);
  await publish(store, trained, lastLearned);
  await publish(store, createPriorModel());
  await report(store, 200, 400);
  const comparison = await compareVersions(store, { name: 'm', version: 1, other: 2, nowMs: NOW_MS });
  const { id, otherId, learnedByVersion, learnedByOther, fromMs, toMs } = comparison;
  assert.deepEqual([id, otherId, learnedByVersion, learnedByOther], ['m@1', 'm@2', 0, 0]);
  assert.deepEqual([comparison.rows, fromMs, toMs], [200, 1200, 1399]);
  const again = countTurns(compareVersions(store, { name: 'm', version: 1, other: 2, nowMs: NOW_MS }));
  assert.ok((await again) >= 3, 'pages of samples, and the answers of each version');
  const back = await compareVersions(store, { name: 'm', version: 2, other: 1, nowMs: NOW_MS });
  for (const [i, { rows: compared, version, other, difference }] of comparison.targets.entries()) {
    assert.equal(compared, 200);
    assert.ok(Math.abs(difference.mean - (version.mape - other.mape)) < 1e-9);
    assert.ok(difference.low < difference.mean && difference.mean < difference.high && difference.high < 0);
    assert.equal(difference.verdict, 'better');
    assert.equal(back.targets[i]?.difference.verdict, 'worse');
  }
  assert.equal(comparison.targets.length, 2);
  const itself = await compareVersions(store, { name: 'm', version: 1, other: 1, nowMs: NOW_MS });
  assert.deepEqual(
    itself.targets.map(({ difference }) => [difference.mean, difference.verdict]),
    [
      [0, 'unclear'],
      [0, 'unclear'],
    ],
  );
});

forEachEngine(
  'too few samples that neither has learned from make the newest of all, and that is said',
  async (store) => {
    await publish(store, createPriorModel());
    const empty = await compareVersions(store, { name: 'm', version: 1, other: 1, nowMs: NOW_MS });
    assert.deepEqual([empty.rows, empty.fromMs, empty.targets], [0, null, []]);
    const lastLearned = await report(store, 0, 200);
    await publish(store, trained, lastLearned);
    await report(store, 200, 240);
    const comparison = await compareVersions(store, { name: 'm', version: 2, other: 1, nowMs: NOW_MS });
    const { rows: compared, learnedByVersion, learnedByOther } = comparison;
    assert.deepEqual([compared, learnedByVersion, learnedByOther], [240, 200, 0]);
    await assert.rejects(
      compareVersions(store, { name: 'm', version: 9, other: 1, nowMs: NOW_MS }),
      (error) => isFailure(error) && error.code === 'not_found' && /"m@9"/.test(error.message),
    );
  },
);
