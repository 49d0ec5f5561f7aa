import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { insertSampleStatements } from '../observations/sample-store.ts';
import { trainModel } from '../training/train-model.ts';
import { measureInputEffects } from './input-effects.ts';
import { packModel, publishModel } from './publish-model.ts';
import { createEffectsReader } from './read-input-effects.ts';

const rows = observePool({ rows: 600, servers: [1, 2] });
const model = trainModel('m@1', tabulate(rows));

test('measureInputEffects() finds the inputs that times depend on, and what each load costs', async () => {
  const effects = await measureInputEffects(model, tabulate(rows.slice(300)));
  assert.equal(effects.rows, 300);
  const [ttft, tpot] = effects.targets;
  const orderOf = (target: typeof ttft) => target!.importance.map(({ field }) => field);
  const most = orderOf(ttft).slice(0, 2).toSorted();
  assert.deepEqual(most, ['input_token_length', 'num_request_waiting'], 'what the TTFT of this pool is made of');
  assert.ok(ttft!.importance[0]!.mapeAdded > 20, String(ttft!.importance[0]!.mapeAdded));
  assert.ok(!orderOf(tpot).slice(0, 2).includes('input_token_length'), 'its TPOT does not depend on the prompt');
  // Rows of the pool always have half of the accelerator memory in use.
  assert.ok(!orderOf(ttft).includes('hbm_utilization'));
  const price = ttft!.prices.find(({ field }) => field === 'input_token_length')!;
  const times = price.points.map(({ ms }) => ms);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
    'TTFT never falls with the prompt',
  );
  assert.ok(times.at(-1)! > 3 * times[0]!);
  assert.deepEqual(ttft!.prices.map(({ field }) => field).toSorted(), [
    'input_token_length',
    'kv_cache_usage',
    'num_request_running',
    'num_request_waiting',
  ]);
});

test('measureInputEffects() leaves the process to others', async () => {
  let turns = 0;
  const count = setInterval(() => {
    turns += 1;
  }, 1);
  await measureInputEffects(model, tabulate(rows.slice(300)));
  clearInterval(count);
  assert.ok(turns > 20, `${turns} turns`);
});

async function prepare(store: Store) {
  const samples = rows.slice(0, 400).map((observation, index) => ({
    id: index + 1,
    observation: { ...observation, atMs: 1000 + index },
  }));
  await store.writeAll(insertSampleStatements(samples));
  const packed = packModel(model);
  await publishModel(store, { name: 'm', packed, source: {}, reason: 'a test', nowMs: 7, promotion: 'promote' });
}

forEachEngine(
  'two processes show the same effects, which are computed once an hour',
  async (store, { openAnother }) => {
    await prepare(store);
    const world = createStillWorld();
    const readHere = createEffectsReader({ store, world });
    const [one, two] = await Promise.all([readHere('m'), readHere('m')]);
    assert.equal(one, two, 'of callers at once, one computes');
    assert.equal(one?.rows, 300);
    world.moveMs(59 * 60_000);
    const readThere = createEffectsReader({ store: await openAnother(), world });
    assert.deepEqual(await readThere('m'), one);
    world.moveMs(2 * 60_000);
    assert.equal((await readThere('m'))?.madeAtMs, world.nowMs(), 'measured again after an hour');
  },
);

forEachEngine('without a served version or with few samples there are no effects', async (store) => {
  const read = createEffectsReader({ store, world: createStillWorld() });
  assert.equal(await read('m'), undefined);
  const packed = packModel(model);
  await publishModel(store, { name: 'm', packed, source: {}, reason: 'a test', nowMs: 7, promotion: 'promote' });
  assert.equal(await read('m'), undefined);
});
