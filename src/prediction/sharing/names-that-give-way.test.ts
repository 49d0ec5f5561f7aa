import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { openSharingProcess } from '../../../test/support/prediction/sharing-processes.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { LEAST_IDLE_MS } from '../online/names/untrained-models.ts';
import { SHARED_NAME } from '../online/predictor.ts';
import { listLiveStates, saveLiveStates } from './live-state-store.ts';

const OWN_LIVE_MODELS = 256;
const [row] = observePool({ rows: 1 });
const listJunk = (targetModels: readonly string[]) => targetModels.map((targetModel) => ({ ...row!, targetModel }));
const JUNK = Array.from({ length: OWN_LIVE_MODELS }, (_, i) => `junk ${i}`);

forEachEngine(
  'a model learns for itself, in all processes, once names that were reported long ago give way',
  async (_, { openAnother }) => {
    const world = createStillWorld();
    const [first, second] = [
      openSharingProcess(await openAnother(), world),
      openSharingProcess(await openAnother(), world),
    ];
    first.observe(listJunk(JUNK));
    const junkPending = first.learning.countPending();
    world.moveMs(LEAST_IDLE_MS);
    first.observe(observePool({ rows: 40, servers: [1, 3] }));
    assert.equal(first.predictor.liveNameOf('m'), 'm');
    assert.ok(first.learning.countPending() < junkPending + 14, 'what the name that gave way had pending is dropped');
    await first.share();
    await second.applyNewRows();
    assert.equal(second.predictor.liveNameOf('m'), 'm');
    const states = first.learning.save(['m', 'junk 0', 'junk 1']);
    assert.deepEqual(
      states.map(({ targetModel }) => targetModel),
      ['m', 'junk 1'],
    );
  },
);

forEachEngine(
  'what a process learned for a name counts once where the name shares a live model',
  async (_, { openAnother }) => {
    const world = createStillWorld();
    const [first, full] = [
      openSharingProcess(await openAnother(), world),
      openSharingProcess(await openAnother(), world),
    ];
    for (const name of JUNK) full.predictor.live(name);
    // A prior that is fitted to more rows would have means of its own.
    first.observe(observePool({ rows: 3, servers: [1, 3] }));
    await first.share();
    full.observe(listJunk(['another']));
    await full.applyNewRows();
    await full.share();
    await first.applyNewRows();
    const events = first.predictor.live('another').learning.tracker;
    const means = (tracker: typeof events) => [...tracker.readTarget({ kind: 'model', number: 0 }, 'ttft')];
    const alone = openSharingProcess(await openAnother(), world);
    alone.observe(listJunk(['another']));
    const own = means(alone.predictor.live('another').learning.tracker);
    const shared = means(first.predictor.live(SHARED_NAME).learning.tracker);
    for (const [i, value] of shared.entries())
      assert.ok(Math.abs(value - own[i]!) < 1e-5, `${i}: ${value}, not ${own[i]}`);
  },
);

forEachEngine('a state of a name that has no place is not restored into what others share', async (store) => {
  const before = openSharingProcess(store);
  before.observe(observePool({ rows: 40, servers: [1, 3] }));
  await before.share();
  await saveLiveStates(store, before.learning.save(['m']), 0);
  const full = openSharingProcess(store);
  for (const name of JUNK) full.predictor.live(name);
  await full.learning.restore(await listLiveStates(store), before.learning.sequence);
  assert.equal(full.predictor.live(SHARED_NAME).learning.recent.list().length, 0);
});
