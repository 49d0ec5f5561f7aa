import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import { takeAllShards } from '../../../../test/support/webhooks/deliveries-store.ts';
import { enqueue, NOW, ORIGIN, OWNER, readDue, result } from '../../../../test/support/webhooks/delivery-queue.ts';
import { statement } from '../../../database/store.ts';
import { ORIGIN_RECONNECTED, type PauseReason, PROBE_REQUESTED } from '../schedule/pause-reason.ts';
import { attemptResultStatements } from './attempt-result-store.ts';
import { restart, restartWaiting } from './delivery-restart-store.ts';
import {
  cancelHookQueueStatement,
  holdHookQueueStatement,
  moveHookQueueStatement,
  releaseHookQueueStatement,
  shardOf,
} from './delivery-store.ts';
import { type HealthChange, type HookQueueChange, hookQueueStatements } from './hook-queue-change-store.ts';
import { recoverHookQueueStatement } from './manual-attempt-store.ts';
import { listWaitingForOrigin, wakeForOrigin } from './origin-wake-store.ts';

const LEASE = { shard: shardOf(ORIGIN), epoch: 1 };
const FENCE = { ...LEASE, generation: 0 };
const wholeRowSql = statement<{ generation: number }>('test-whole-hook-queue', 'SELECT * FROM endpoint_queue');
const BY_OWNER = { workerId: OWNER, nowMs: NOW };
const FINE = { fails: 0, failingSinceMs: null, openings: 0, pause: null };
const healthStatements = (changes: readonly Omit<HealthChange, 'kind' | keyof typeof FENCE>[], generation = 0) =>
  hookQueueStatements(
    changes.map((change) => ({ kind: 'health', ...FENCE, generation, ...change })),
    [],
    BY_OWNER,
  );
const pauseFor = (reason: PauseReason) => ({ sinceMs: NOW - 1000, untilMs: NOW + 9000, reason });

forEachEngine('a paused hook queue is not woken by an enqueue', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  await enqueue(store, 1);
  await store.writeAll(
    healthStatements([{ hookId: 1, fails: 12, failingSinceMs: NOW, openings: 3, pause: pauseFor('failures') }]),
  );
  await enqueue(store, 1, NOW + 1);
  assert.deepEqual(await readDue(store, NOW + 8999), []);
  const [due] = await readDue(store, NOW + 9000);
  assert.deepEqual([due?.fails, due?.failing_since_ms, due?.parked], [12, NOW, 1]);
  assert.deepEqual([due?.openings, due?.paused_since_ms, due?.pause_reason], [3, NOW - 1000, 'failures']);
  await store.writeAll(healthStatements([{ hookId: 1, ...FINE }]));
  const [open] = await readDue(store, NOW + 9000);
  assert.deepEqual([open?.fails, open?.failing_since_ms, open?.parked], [0, null, 0]);
  assert.deepEqual([open?.openings, open?.paused_since_ms, open?.pause_reason], [0, null, null]);
});

forEachEngine('the pause of a hook queue ends when it is released or a person requests a delivery', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  const id = await enqueue(store, 1);
  const paused = { hookId: 1, fails: 7, failingSinceMs: NOW, openings: 3, pause: pauseFor('no_connection') };
  const ends: [end: () => Promise<unknown>, reason: string][] = [
    [() => store.writeAll([releaseHookQueueStatement(1, NOW)]), PROBE_REQUESTED],
    [() => restart(store, [1, id], NOW), PROBE_REQUESTED],
    [() => restartWaiting(store, 1, NOW).then(() => restartWaiting(store, 1, NOW)), PROBE_REQUESTED],
    [
      () =>
        store.writeAll([
          ...attemptResultStatements([result(1, id, { nextState: 'pending' })], OWNER),
          recoverHookQueueStatement({ hookId: 1, deliveryId: id, startedAtMs: NOW, generation: 1 }, NOW),
        ]),
      ORIGIN_RECONNECTED,
    ],
  ];
  for (const [end, reason] of ends) {
    const [{ generation } = { generation: 0 }] = await store.read(wholeRowSql);
    await store.writeAll(healthStatements([paused], generation));
    assert.deepEqual(await readDue(store), []);
    await end();
    const [due] = await readDue(store);
    assert.deepEqual([due?.parked, due?.paused_since_ms, due?.pause_reason], [0, null, reason]);
  }
});

forEachEngine('when an origin works again, only hook queues that waited for it are woken', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  for (const hookId of [1, 2]) await enqueue(store, hookId);
  const failing = { fails: 12, failingSinceMs: NOW, openings: 0 };
  await store.writeAll(
    healthStatements([
      { hookId: 1, ...failing, pause: pauseFor('no_connection') },
      { hookId: 2, ...failing, pause: pauseFor('failures') },
    ]),
  );
  assert.deepEqual(await listWaitingForOrigin(store, ORIGIN), [1]);
  await wakeForOrigin(store, { origin: ORIGIN, hookIds: [1, 2] }, NOW);
  assert.deepEqual(
    (await readDue(store)).map((due) => due.hook_id),
    [1],
  );
});

forEachEngine('a held hook queue sleeps through enqueues and changes until it is released', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  await enqueue(store, 1);
  await store.writeAll([holdHookQueueStatement(1, NOW)]);
  await enqueue(store, 1);
  await store.writeAll(healthStatements([{ hookId: 1, ...FINE }]));
  await store.writeAll(hookQueueStatements([], [{ hookId: 1, version: 99, ...LEASE }], BY_OWNER));
  assert.deepEqual(await readDue(store, NOW * 2), []);
  await store.writeAll([releaseHookQueueStatement(1, NOW)]);
  assert.equal((await readDue(store)).length, 1);
});

forEachEngine('a cancelled hook queue never wakes', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  await enqueue(store, 1);
  await store.writeAll([cancelHookQueueStatement(1, NOW)]);
  await store.writeAll([releaseHookQueueStatement(1, NOW)]);
  await enqueue(store, 1);
  assert.deepEqual(await readDue(store, NOW * 2), []);
});

forEachEngine('an answer of the former address of a moved hook changes nothing of the hook', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  await enqueue(store, 1);
  const elsewhere = Array.from({ length: 300 }, (_, number) => `https://moved-${number}.test`).find(
    (origin) => shardOf(origin) !== LEASE.shard,
  )!;
  await store.writeAll([moveHookQueueStatement(1, elsewhere)]);
  const [moved] = await readDue(store);
  // The worker still owns the shard of the former address, in the same epoch.
  const changes: HookQueueChange[] = [
    { kind: 'health', ...FENCE, hookId: 1, ...FINE, fails: 9, pause: pauseFor('failures') },
    { kind: 'move', ...LEASE, hookId: 1, origin: ORIGIN },
    { kind: 'disable', hookId: 1, reason: 'gone', under: FENCE },
  ];
  await store.writeAll(hookQueueStatements(changes, [], BY_OWNER));
  assert.deepEqual(await readDue(store), [moved]);
});

forEachEngine('a moved hook queue belongs to the shard of its new origin', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  await enqueue(store, 1);
  await store.writeAll([moveHookQueueStatement(1, 'https://example.com')]);
  const [due] = await readDue(store);
  assert.deepEqual([due?.origin, due?.shard], ['https://example.com', shardOf('https://example.com')]);
});

const underLease: [title: string, changes: HookQueueChange[]][] = [
  ['health', [{ kind: 'health', hookId: 1, ...FENCE, ...FINE, fails: 3 }]],
  ['disable', [{ kind: 'disable', hookId: 1, reason: 'gone', under: FENCE }]],
  ['move', [{ kind: 'move', hookId: 1, origin: 'https://example.com', ...LEASE }]],
  ['make room', [{ kind: 'make room', hookId: 1, ...LEASE }]],
  ['sleep', []],
];
for (const [title, changes] of underLease)
  forEachEngine(`${title} of a hook queue is stored under the lease alone under which it was read`, async (store) => {
    await takeAllShards(store, OWNER, NOW);
    const id = await enqueue(store, 1);
    await store.writeAll(attemptResultStatements([result(1, id)], OWNER));
    const [due] = await readDue(store);
    assert.equal(due?.epoch, LEASE.epoch);
    const sleeps = title === 'sleep' ? [{ hookId: 1, version: due.version, ...LEASE }] : [];
    const context = { ...BY_OWNER, nowMs: NOW + 1 };
    const steps = hookQueueStatements(changes, sleeps, context);
    const before = await store.read(wholeRowSql);
    await takeAllShards(store, 'another', NOW + 60_000);
    await store.writeAll(steps);
    assert.deepEqual(await store.read(wholeRowSql), before);
    await takeAllShards(store, OWNER, NOW + 120_000);
    await store.writeAll(steps);
    assert.deepEqual(await store.read(wholeRowSql), before);
    const [again] = await readDue(store);
    const lease = { ...FENCE, epoch: again!.epoch };
    const renewed = changes.map((change) => ({ ...change, ...lease, ...('under' in change && { under: lease }) }));
    await store.writeAll(
      hookQueueStatements(
        renewed,
        sleeps.map((sleep) => ({ ...sleep, ...lease })),
        context,
      ),
    );
    assert.notDeepEqual(await store.read(wholeRowSql), before);
  });

forEachEngine('a hook queue that makes room is found after those that are due; a later pause stays', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  for (const hookId of [1, 2, 3]) await enqueue(store, hookId);
  await store.writeAll(healthStatements([{ hookId: 3, ...FINE, pause: pauseFor('failures') }]));
  const changes = [1, 3].map((hookId): HookQueueChange => ({ kind: 'make room', hookId, ...LEASE }));
  await store.writeAll(hookQueueStatements(changes, [], { ...BY_OWNER, nowMs: NOW + 1 }));
  assert.deepEqual(
    (await readDue(store, NOW + 8999)).map((row) => [row.hook_id, row.next_at_ms]),
    [
      [2, NOW],
      [1, NOW + 1],
    ],
  );
});

forEachEngine('a hook queue whose pause ends as it makes room is found after those that are due', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  for (const hookId of [1, 2]) await enqueue(store, hookId);
  const over = { sinceMs: NOW - 9000, untilMs: NOW - 1000, reason: 'failures' as const };
  await store.writeAll(healthStatements([{ hookId: 1, ...FINE, pause: over }]));
  const changes: HookQueueChange[] = [
    { kind: 'make room', hookId: 1, ...LEASE },
    { kind: 'health', hookId: 1, ...FENCE, ...FINE },
  ];
  await store.writeAll(hookQueueStatements(changes, [], { ...BY_OWNER, nowMs: NOW + 1 }));
  assert.deepEqual(
    (await readDue(store, NOW + 1)).map((row) => [row.hook_id, row.next_at_ms, row.parked]),
    [
      [2, NOW, 0],
      [1, NOW + 1, 0],
    ],
  );
});

forEachEngine(
  'a request to end a pause is kept while its hook is off, and ends when the hook queue makes room',
  async (store) => {
    await takeAllShards(store, OWNER, NOW);
    await enqueue(store, 1);
    await store.writeAll(healthStatements([{ hookId: 1, ...FINE, pause: pauseFor('no_connection') }]));
    await store.writeAll([releaseHookQueueStatement(1, NOW), holdHookQueueStatement(1, NOW)]);
    await store.writeAll([releaseHookQueueStatement(1, NOW)]);
    assert.equal((await readDue(store))[0]?.pause_reason, PROBE_REQUESTED);
    const room: HookQueueChange = { kind: 'make room', hookId: 1, ...LEASE };
    await store.writeAll(hookQueueStatements([room], [], { ...BY_OWNER, nowMs: NOW + 1 }));
    assert.equal((await readDue(store, NOW + 1))[0]?.pause_reason, null);
  },
);

test('hookQueueStatements() locks rows in ascending order of hooks, whatever changes them, and a hook in the order of its changes', () => {
  const changes: HookQueueChange[] = [
    { kind: 'cancel', hookId: 9 },
    { kind: 'health', hookId: 5, ...FENCE, ...FINE },
    { kind: 'move', hookId: 7, origin: ORIGIN, ...LEASE },
    { kind: 'wake origin', origin: ORIGIN },
    { kind: 'disable', hookId: 7, reason: 'gone', under: FENCE },
    { kind: 'health', hookId: 4, ...FENCE, ...FINE },
  ];
  const sleeps = [8, 5, 3].map((hookId) => ({ hookId, version: 1, ...LEASE }));
  const steps = hookQueueStatements(changes, sleeps, BY_OWNER);
  assert.deepEqual(
    steps.map(({ statement: { name }, parameters }) => [name, parameters[0]]),
    [
      ['endpoint-rest-1', 3],
      ['endpoint-change-2', 4],
      ['endpoint-rest-1', 5],
      ['endpoint-move-found', 7],
      ['endpoint-hold-failing', 7],
      ['endpoint-rest-1', 8],
      ['endpoint-cancel', 9],
    ],
  );
});
