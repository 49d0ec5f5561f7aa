import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import type { Store } from '../../database/store.ts';
import { createPriorModel } from '../model/model.ts';
import { createLiveModel } from '../online/live-model.ts';
import { createPredictor, SHARED_NAME } from '../online/predictor.ts';
import { createPredictColumns } from '../schema/columns.ts';
import { readLiveState, writeLiveState } from './live-state-store.ts';
import { createSharedLearning } from './shared-learning.ts';

/** How many turns of the event loop the work takes. */
async function countTurns<T>(work: Promise<T>): Promise<{ readonly turns: number; readonly result: T }> {
  let turns = 0;
  let isWorking = true;
  const answer = (): void => {
    turns++;
    if (isWorking) setImmediate(answer);
  };
  setImmediate(answer);
  const result = await work;
  isWorking = false;
  return { turns, result };
}

test('the state of a thousand servers is encoded and decoded in several turns of the event loop', async () => {
  const live = createLiveModel(createPriorModel());
  const columns = createPredictColumns(1);
  columns.count = 1;
  const addresses = Array.from({ length: 1000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
  for (const [i, address] of addresses.entries())
    live.observe(live.forecast(columns, 'decode', Buffer.from(address)), 'ttft', { observedMs: 50 + i });
  const written = await countTurns(writeLiveState(live.save()));
  const read = await countTurns(readLiveState(written.result));
  for (const { turns } of [written, read]) assert.ok(turns >= 30, `${turns} turns`);
  assert.deepEqual(Array.from(read.result.servers, ({ address }) => address).sort(), addresses.toSorted());
});

test('calls are answered between two models that are restored', async () => {
  const world = createStillWorld();
  const predictor = createPredictor(world);
  // No row of the log is read or appended.
  const learning = createSharedLearning({ store: {} as Store, world, predictor });
  const [state] = learning.save([SHARED_NAME]);
  const states = Array.from({ length: 30 }, (_, i) => ({ ...state!, targetModel: `m${i}` }));
  const { turns } = await countTurns(learning.restore(states, 0));
  assert.ok(turns >= states.length - 1, `${turns} turns`);
  for (const { targetModel } of states) assert.equal(predictor.liveNameOf(targetModel), targetModel);
});
