import assert from 'node:assert/strict';
import { test } from 'node:test';
import { realWorld } from '../../../world.ts';
import { OUTSIDE_SHARDS } from '../queue/attempt-result-store.ts';
import type { DueEndpoint } from '../queue/delivery-queue-store.ts';
import { admit, createEndpointTable, markStored, noteDue, pickJobs } from './endpoint-table.ts';

const DUE: DueEndpoint = {
  hook_id: 1,
  owner_id: 'owner',
  origin: 'https://example.com',
  shard: 3,
  next_at_ms: 0,
  version: 1,
  parked: 0,
  fails: 0,
  failing_since_ms: null,
  openings: 0,
  paused_since_ms: null,
  pause_reason: null,
};

test("the stored result of a manual attempt leaves the worker's own attempt of the delivery in its place", () => {
  const table = createEndpointTable(realWorld);
  const endpoint = noteDue(table, DUE)!;
  const row = { hook_id: 1, id: 7, lane: 0, body_bytes: 10 };
  admit(table, endpoint, row);
  assert.equal(pickJobs(table).length, 1);
  const { stored } = endpoint;
  markStored(table, [{ hookId: 1, deliveryId: 7, epoch: OUTSIDE_SHARDS.epoch }], []);
  admit(table, endpoint, row);
  assert.deepEqual([pickJobs(table).length, table.unstored], [0, 1]);
  assert.equal(endpoint.stored, stored + 1);
  markStored(table, [{ hookId: 1, deliveryId: 7, epoch: 2 }], []);
  admit(table, endpoint, row);
  assert.deepEqual([endpoint.unstored.size, table.unstored], [1, 0]);
});
