import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeDueRow } from '../../../../test/support/due-hook-queue.ts';
import { realWorld } from '../../../world.ts';
import { OUTSIDE_SHARDS } from '../queue/attempt-result-store.ts';
import { admit, createHookQueueTable, markStored, noteDue, pickJobs } from './hook-queue-table.ts';

const DUE = makeDueRow({ hook_id: 1 });

test("the stored result of a manual attempt leaves the worker's own attempt of the delivery in its place", () => {
  const table = createHookQueueTable(realWorld);
  const hookQueue = noteDue(table, DUE)!;
  const row = { hook_id: 1, id: 7, lane: 0, body_bytes: 10 };
  admit(table, hookQueue, row);
  assert.equal(pickJobs(table).length, 1);
  const { stored } = hookQueue;
  markStored(table, [{ hookId: 1, deliveryId: 7, epoch: OUTSIDE_SHARDS.epoch }], []);
  admit(table, hookQueue, row);
  assert.deepEqual([pickJobs(table).length, table.uncommitted], [0, 1]);
  assert.equal(hookQueue.stored, stored + 1);
  markStored(table, [{ hookId: 1, deliveryId: 7, epoch: 2 }], []);
  admit(table, hookQueue, row);
  assert.deepEqual([hookQueue.deliveryIds.size, table.uncommitted], [1, 0]);
});
