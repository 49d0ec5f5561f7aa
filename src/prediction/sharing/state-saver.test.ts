import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { openSharingProcess } from '../../../test/support/prediction/sharing-processes.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { statement } from '../../database/store.ts';
import { SHARED_NAME } from '../online/predictor.ts';
import { listLiveStates, listSavedStates, saveLiveStates } from './live-state-store.ts';
import { createStateSaver } from './state-saver.ts';

const DAY_MS = 86_400_000;

const insertTrainedSql = statement('test-insert-trained', 'INSERT INTO models (name, last_version) VALUES ($1, 1)');

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

forEachEngine('states that a restart would not read are deleted', async (store) => {
  const world = createStillWorld();
  const process = openSharingProcess(store, world);
  const saver = createStateSaver({ store, world }, process.learning);
  const [state] = process.learning.save([SHARED_NAME]);
  const saveOld = async (targetModel: string, i: number) =>
    await saveLiveStates(store, [{ ...state!, targetModel }], world.nowMs() - 10_000 + i);
  await saveOld(SHARED_NAME, 0);
  await store.write(insertTrainedSql, ['trained']);
  await saveOld('trained', 0);
  for (let i = 1; i <= 300; i++) await saveOld(`m${i}`, i);
  const restored = await listLiveStates(store);
  await saver.save(5000);
  const names = (states: Iterable<string>) => [...states].sort();
  const kept = names((await listSavedStates(store)).keys());
  assert.deepEqual(kept, names(restored.map(({ targetModel }) => targetModel)));
  assert.equal(kept.length, 258);
  // Names that callers send later do not cost a trained model what its servers have shown.
  assert.ok(kept.includes('trained'));
});
