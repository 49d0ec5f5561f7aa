import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { openSharingProcess } from '../../../test/support/prediction/sharing-processes.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { listSavedStates } from './live-state-store.ts';
import { createStateSaver } from './state-saver.ts';

const DAY_MS = 86_400_000;

forEachEngine('a state that was saved by a clock a day ahead is saved again once the clock is right', async (store) => {
  const world = createStillWorld();
  const process = openSharingProcess(store, world);
  const saver = createStateSaver({ store, world }, process.learning);
  const save = async () => {
    process.observe(observePool({ rows: 20 }));
    await process.share();
    saver.markChanged(['m']);
    await saver.save(5000);
    return (await listSavedStates(store)).get('m')?.savedAtMs;
  };
  world.moveMs(DAY_MS);
  assert.equal(await save(), world.nowMs());
  world.moveMs(-DAY_MS);
  assert.equal(await save(), world.nowMs());
});
