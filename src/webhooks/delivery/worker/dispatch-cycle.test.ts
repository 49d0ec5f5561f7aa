import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStillWorld } from '../../../../test/support/basics/still-world.ts';
import { makeDueRow } from '../../../../test/support/webhooks/due-hook-queue.ts';
import { admit, createHookQueueTable, ensureHookQueue, markStored, pickJobs } from '../hook-queues/hook-queue-table.ts';
import { recordOutcome } from '../hook-queues/outcome-effects.ts';
import type { ContentRow, DueHookQueue } from '../queue/delivery-queue-store.ts';
import { type DispatchDependencies, scanDue } from './dispatch-cycle.ts';
import { sendDelivery } from './send-delivery.ts';
import { createWakeSignal } from './wake-signal.ts';

const NOW_MS = 1_000_000;
const PAUSED = {
  parked: 1,
  pause_reason: 'failures',
  openings: 1,
  paused_since_ms: 1,
  next_at_ms: NOW_MS - 1,
} as const;

test('deliveries that wait for the probe of a hook are sent as soon as an attempt finds that the hook was released', async () => {
  const world = createStillWorld(NOW_MS);
  const table = createHookQueueTable(world);
  const hookQueue = ensureHookQueue(table, makeDueRow({ hook_id: 1, ...PAUSED }))!;
  for (const id of [7, 8, 9]) admit(table, hookQueue, { hook_id: 1, id, lane: 0, body_bytes: 2 });
  const [probe, ...others] = pickJobs(table);
  assert.deepEqual(others, [], 'the pause is over, and one attempt is allowed');
  const signal = createWakeSignal();
  const dependencies = {
    table,
    world,
    signal,
    leases: { epochOf: () => hookQueue.epoch },
    makeAttempt: () => new Promise(() => {}),
  } as unknown as DispatchDependencies;
  const url = `${hookQueue.origin}/hook`;
  const content = { id: 7, hook_id: 1, url, disabled_at_ms: null, due_at_ms: NOW_MS, generation: 1 } as ContentRow;
  void sendDelivery(dependencies, { job: probe!, content, attemptId: 1 });
  assert.equal(await signal.wait(0), true, 'another cycle follows');
  assert.deepEqual(
    pickJobs(table).map(({ id }) => id),
    [8, 9],
  );
});

test('a scan that read the row of a hook before its pause was stored takes it no more, and the next scan does', async () => {
  const table = createHookQueueTable(createStillWorld(NOW_MS));
  const row = makeDueRow({ hook_id: 1 });
  const hookQueue = ensureHookQueue(table, row)!;
  admit(table, hookQueue, { hook_id: 1, id: 7, lane: 0, body_bytes: 2 });
  pickJobs(table);
  recordOutcome(table, hookQueue, { kind: 'refused', status: 429, retryAfterMs: 60_000 });
  const reads = [Promise.withResolvers<DueHookQueue[]>(), Promise.withResolvers<DueHookQueue[]>()];
  const [first, second] = reads;
  const news: boolean[] = [];
  const scan = { read: () => reads.shift()!.promise, end: (hasNews: boolean) => void news.push(hasNews) };
  const dependencies = { table, scan } as unknown as DispatchDependencies;
  const scanned = scanDue(dependencies);
  markStored(table, [{ hookId: 1, deliveryId: 7, epoch: 1 }], []);
  first!.resolve([row, makeDueRow({ hook_id: 2 })]);
  await scanned;
  assert.deepEqual([...table.hookQueues.keys()], [2], 'the row of the other hook is not outdated');
  second!.resolve([row]);
  await scanDue(dependencies);
  assert.deepEqual([...table.hookQueues.keys()], [2, 1]);
  assert.deepEqual(news, [true, true]);
});
