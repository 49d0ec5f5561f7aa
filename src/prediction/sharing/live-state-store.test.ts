import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPriorModel } from '../model/model.ts';
import { createLiveModel } from '../online/live-model.ts';
import { createPredictColumns } from '../schema/columns.ts';
import { readLiveState, writeLiveState } from './live-state-store.ts';

test('the state of a thousand servers is encoded in several turns of the event loop, between which calls are answered', async () => {
  const live = createLiveModel(createPriorModel());
  const columns = createPredictColumns(1);
  columns.count = 1;
  const addresses = Array.from({ length: 1000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
  for (const [i, address] of addresses.entries())
    live.observe(live.forecast(columns, 'decode', Buffer.from(address)), 'ttft', { observedMs: 50 + i });
  let turns = 0;
  let isWriting = true;
  const answer = (): void => {
    turns++;
    if (isWriting) setImmediate(answer);
  };
  setImmediate(answer);
  const written = await writeLiveState(live.save());
  isWriting = false;
  assert.ok(turns >= 30, `${turns} turns`);
  assert.deepEqual(Array.from(readLiveState(written).servers, ({ address }) => address).sort(), addresses.toSorted());
});
