import assert from 'node:assert/strict';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { openSharingProcess } from '../../../test/support/prediction/sharing-processes.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { DEFAULT_TRAINING, trainModel } from '../training/train-model.ts';
import { listLiveStates, saveLiveStates } from './live-state-store.ts';

const trees = { ...DEFAULT_TRAINING.trees, trees: 20 };
const model = trainModel('m@1', tabulate(observePool({ rows: 400 })), { ...DEFAULT_TRAINING, trees });
/** As many have numbers of their own. */
const NUMBERED = 15;

/** Requests of one pod type whose servers are all slower by this factor. */
function observeKind(podType: string, slowness: number) {
  return observePool({ rows: 60, seed: 5, servers: [slowness, slowness], podType });
}

/** At a server that has no times of its own. */
function describeNew(podType: string) {
  return { ...observePool({ rows: 1, seed: 9, podType })[0]!.input, serverIp: 'new' };
}

forEachEngine('a restart knows which pod type is slow, whatever was seen first since', async (store) => {
  const before = openSharingProcess(store);
  before.predictor.swap('m', model);
  before.observe([...observeKind('decode', 1), ...observeKind('prefill', 3)]);
  await before.share();
  await saveLiveStates(store, before.learning.save(['m']), 0);
  const after = openSharingProcess(store);
  after.predictor.swap('m', model);
  after.observe(observeKind('prefill', 1).slice(0, 1));
  await after.learning.restore(await listLiveStates(store), before.learning.sequence);
  for (const podType of ['decode', 'prefill'])
    assert.deepEqual(after.predict(describeNew(podType)), before.predict(describeNew(podType)), podType);
});

forEachEngine('a pod type that finds no number after a restart leaves the others as they were', async (store) => {
  const before = openSharingProcess(store);
  before.predictor.swap('m', model);
  before.observe([...observeKind('late', 1), ...observeKind('decode', 3)]);
  await before.share();
  await saveLiveStates(store, before.learning.save(['m']), 0);
  const after = openSharingProcess(store);
  after.predictor.swap('m', model);
  for (let i = 0; i < NUMBERED - 1; i++) after.observe(observeKind(`kind ${i}`, 1).slice(0, 1));
  after.observe(observeKind('decode', 1).slice(0, 1));
  await after.learning.restore(await listLiveStates(store), before.learning.sequence);
  assert.deepEqual(after.predict(describeNew('decode')), before.predict(describeNew('decode')));
});
