import assert from 'node:assert/strict';
import { test } from 'node:test';
import { takeAllShards } from '../../../../test/support/deliveries-store.ts';
import { forEachEngine } from '../../../../test/support/engines.ts';
import { type Store, statement } from '../../../database/store.ts';
import type { PauseReason } from '../schedule/pause-reason.ts';
import { type AttemptResult, attemptResultStatements } from './attempt-result-store.ts';
import { FEW, readContents, readDueEndpoints, readFewWaiting, readWaiting } from './delivery-queue-store.ts';
import {
  recoverEndpointStatement,
  reopenUnverified,
  reserveTest,
  restart,
  wakeOrigin,
} from './delivery-restart-store.ts';
import {
  cancelEndpointStatement,
  countPendingDeliveries,
  enqueueStatements,
  holdEndpointStatement,
  moveEndpointStatement,
  releaseEndpointStatement,
  shardOf,
} from './delivery-store.ts';
import { type EndpointChange, endpointStatements, type HealthChange } from './endpoint-change-store.ts';

const ORIGIN = 'http://127.0.0.1:9';
const OWNER = 'worker-1';
const NOW = 1_000_000;

async function enqueue(store: Store, hookId: number, nowMs = NOW, dueAtMs?: number): Promise<number> {
  const [id = 0] = await store.makeIds(1);
  const base = { id, hookId, eventId: 1, uuid: `uuid-${id}`, body: Buffer.from('{}'), eventKind: 'push' as const };
  const due = dueAtMs === undefined ? {} : { dueAtMs };
  await store.writeAll(enqueueStatements([{ ...base, origin: ORIGIN, ownerId: 'owner', nowMs, ...due }]));
  return id;
}

let lastAttemptId = 0;

function result(hookId: number, deliveryId: number, overrides: Partial<AttemptResult> = {}): AttemptResult {
  lastAttemptId += 1;
  const attempt = { id: lastAttemptId, startedAtMs: NOW, outcome: 'accepted', status: 200, reason: null };
  return {
    deliveryId,
    hookId,
    foundDueAtMs: NOW,
    attempts: 0,
    shard: shardOf(ORIGIN),
    epoch: 1,
    state: 'succeeded',
    lane: 0,
    dueAtMs: NOW,
    attempt: { ...attempt, remoteAddress: '127.0.0.1', detail: '{}', responseBody: Buffer.from('ok') },
    ...overrides,
  };
}

async function readDue(store: Store, nowMs = NOW, owner = OWNER) {
  return await readDueEndpoints(store, { workerId: owner, nowMs, afterMs: 0, afterHookId: 0, limit: 100 });
}

const attemptNumbersSql = statement<{ attempt: number }>(
  'test-attempts',
  'SELECT attempt FROM delivery_attempts ORDER BY attempt',
);
const stateOfSql = statement<{ state: string; attempts: number }>(
  'test-state',
  'SELECT state, attempts FROM deliveries WHERE id = $1',
);

forEachEngine('an enqueued delivery makes its endpoint due for the owner of its shard only', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  const id = await enqueue(store, 7);
  const [due] = await readDue(store);
  assert.equal(due?.hook_id, 7);
  assert.equal(due?.shard, shardOf(ORIGIN));
  assert.deepEqual(await readDue(store, NOW, 'worker-2'), []);
  assert.deepEqual(await readWaiting(store, [{ hookId: 7, limit: 10 }], NOW), [
    { hook_id: 7, id, lane: 0, body_bytes: 2 },
  ]);
  const [content] = await readContents(store, [{ hookId: 7, id }]);
  assert.equal(content?.uuid, `uuid-${id}`);
  assert.equal(content?.url, null);
  assert.equal(await countPendingDeliveries(store), 1);
});

forEachEngine('waiting deliveries come by due time, a few of each endpoint, in both lanes', async (store) => {
  const ids: number[] = [];
  for (let count = 0; count < 5; count += 1) ids.push(await enqueue(store, 1, NOW + count));
  for (let count = 0; count < 3; count += 1) await enqueue(store, 2, NOW);
  const requests = Array.from({ length: 70 }, (_, hookId) => ({ hookId, limit: 2 }));
  const rows = await readWaiting(store, requests, NOW + 3);
  assert.deepEqual(
    rows.filter((row) => row.hook_id === 1).map((row) => row.id),
    ids.slice(0, 2),
  );
  assert.equal(rows.filter((row) => row.hook_id === 2).length, 2);
});

forEachEngine('few waiting deliveries come with their contents, but for large bodies', async (store) => {
  const small = await enqueue(store, 1, NOW);
  const [large = 0] = await store.makeIds(1);
  const base = { id: large, hookId: 1, eventId: 1, uuid: 'large', eventKind: 'push' as const, nowMs: NOW + 1 };
  await store.writeAll(enqueueStatements([{ ...base, body: Buffer.alloc(20_000), origin: ORIGIN, ownerId: 'owner' }]));
  for (let count = 0; count <= FEW; count += 1) await enqueue(store, 2, NOW);
  await enqueue(store, 1, NOW + 10);
  const { rows, contents } = await readFewWaiting(store, [1, 2, 3], NOW + 5);
  assert.deepEqual(
    rows.filter((row) => row.hook_id === 1).map((row) => row.id),
    [small, large],
  );
  assert.equal(rows.filter((row) => row.hook_id === 2).length, FEW);
  const [read] = await readContents(store, [{ hookId: 1, id: small }]);
  const {
    lane: _lane,
    body_bytes: _bytes,
    ...found
  } = contents.find(({ id }) => id === small) as never as object & {
    lane: number;
    body_bytes: number;
  };
  assert.deepEqual(found, { ...read });
  assert.ok(!contents.some(({ id }) => id === large));
});

forEachEngine('a result counts once, and never for a worker that lost the shard', async (store) => {
  const epochs = await takeAllShards(store, OWNER, NOW);
  const id = await enqueue(store, 1);
  const epoch = epochs.get(shardOf(ORIGIN))!;
  await store.writeAll(attemptResultStatements([result(1, id, { epoch: epoch - 1 })], OWNER));
  await store.writeAll(attemptResultStatements([result(1, id, { epoch })], 'worker-2'));
  assert.deepEqual(await store.read(stateOfSql, [id]), [{ state: 'pending', attempts: 2 }], 'both were sent');
  const stored = result(1, id, { epoch });
  const [first] = await store.writeAll(attemptResultStatements([stored], OWNER));
  assert.deepEqual(first, [{ id }]);
  const [again] = await store.writeAll(attemptResultStatements([stored], OWNER));
  assert.deepEqual(again, []);
  assert.deepEqual(await store.read(stateOfSql, [id]), [{ state: 'succeeded', attempts: 3 }]);
  assert.deepEqual(await store.read(attemptNumbersSql), [{ attempt: 1 }, { attempt: 2 }, { attempt: 3 }]);
  const late = result(1, id, { epoch, state: 'pending', dueAtMs: NOW + 1 });
  await store.writeAll(attemptResultStatements([late], OWNER));
  assert.deepEqual(
    await store.read(stateOfSql, [id]),
    [{ state: 'succeeded', attempts: 4 }],
    'what has ended stays so',
  );
});

forEachEngine('a batch of any size is stored', async (store) => {
  const epochs = await takeAllShards(store, OWNER, NOW);
  const epoch = epochs.get(shardOf(ORIGIN))!;
  const ids: number[] = [];
  for (let count = 0; count < 87; count += 1) ids.push(await enqueue(store, count % 9));
  const batch = ids.map((id, index) => result(index % 9, id, { epoch }));
  const rows = (await store.writeAll(attemptResultStatements(batch, OWNER))).flat();
  assert.equal(rows.length, 87);
  assert.equal(await countPendingDeliveries(store), 0);
});

forEachEngine('an endpoint sleeps until its next retry, but not over what was just enqueued', async (store) => {
  const epochs = await takeAllShards(store, OWNER, NOW);
  const epoch = epochs.get(shardOf(ORIGIN))!;
  const id = await enqueue(store, 1);
  const [due] = await readDue(store);
  const retry = result(1, id, { epoch, state: 'pending', lane: 1, dueAtMs: NOW + 5000 });
  await store.writeAll([
    ...attemptResultStatements([retry], OWNER),
    ...endpointStatements([], [{ hookId: 1, version: due!.version }], NOW),
  ]);
  assert.deepEqual(await readDue(store), []);
  assert.deepEqual(await readDue(store, NOW + 4999), []);
  const [later] = await readDue(store, NOW + 5000);
  await enqueue(store, 1, NOW + 5001);
  await store.writeAll(endpointStatements([], [{ hookId: 1, version: later!.version }], NOW));
  assert.equal((await readDue(store, NOW + 5001)).length, 1);
});

forEachEngine('an endpoint with nothing left sleeps until it is enqueued to', async (store) => {
  const epochs = await takeAllShards(store, OWNER, NOW);
  const id = await enqueue(store, 1);
  const [due] = await readDue(store);
  const stored = result(1, id, { epoch: epochs.get(shardOf(ORIGIN))! });
  await store.writeAll([
    ...attemptResultStatements([stored], OWNER),
    ...endpointStatements([], [{ hookId: 1, version: due!.version }], NOW),
  ]);
  assert.deepEqual(await readDue(store, NOW * 1000), []);
  await enqueue(store, 1, NOW + 10);
  assert.equal((await readDue(store, NOW + 10)).length, 1);
});

const FINE = { fails: 0, failingSinceMs: null, openings: 0, pause: null };
const healthStatements = (changes: readonly Omit<HealthChange, 'kind'>[]) =>
  endpointStatements(
    changes.map((change) => ({ kind: 'health', ...change })),
    [],
    NOW,
  );
const pauseFor = (reason: PauseReason) => ({ sinceMs: NOW - 1000, untilMs: NOW + 9000, reason });

forEachEngine('a paused endpoint is not woken by an enqueue', async (store) => {
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

forEachEngine('an endpoint that is released, or that a person asks for, forgets its pause', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  const id = await enqueue(store, 1);
  const paused = healthStatements([
    { hookId: 1, fails: 7, failingSinceMs: NOW, openings: 3, pause: pauseFor('no_connection') },
  ]);
  for (const end of [
    () => store.writeAll([releaseEndpointStatement(1, NOW)]),
    () => restart(store, [1, id], NOW),
    () => store.writeAll([recoverEndpointStatement(1, NOW)]),
  ]) {
    await store.writeAll(paused);
    assert.deepEqual(await readDue(store), []);
    await end();
    const [due] = await readDue(store);
    assert.deepEqual([due?.parked, due?.paused_since_ms], [0, null]);
    assert.notEqual(due?.pause_reason, 'no_connection');
  }
});

forEachEngine('when an origin works again, those who waited for it only are woken', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  for (const hookId of [1, 2]) await enqueue(store, hookId);
  const failing = { fails: 12, failingSinceMs: NOW, openings: 0 };
  await store.writeAll(
    healthStatements([
      { hookId: 1, ...failing, pause: pauseFor('no_connection') },
      { hookId: 2, ...failing, pause: pauseFor('failures') },
    ]),
  );
  await wakeOrigin(store, ORIGIN, NOW);
  assert.deepEqual(
    (await readDue(store)).map((due) => due.hook_id),
    [1],
  );
});

forEachEngine('a held endpoint sleeps through enqueues and changes until it is released', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  await enqueue(store, 1);
  await store.writeAll([holdEndpointStatement(1, NOW)]);
  await enqueue(store, 1);
  await store.writeAll(healthStatements([{ hookId: 1, ...FINE }]));
  await store.writeAll(endpointStatements([], [{ hookId: 1, version: 99 }], NOW));
  assert.deepEqual(await readDue(store, NOW * 2), []);
  await store.writeAll([releaseEndpointStatement(1, NOW)]);
  assert.equal((await readDue(store)).length, 1);
});

forEachEngine('a cancelled endpoint never wakes', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  await enqueue(store, 1);
  await store.writeAll([cancelEndpointStatement(1, NOW)]);
  await store.writeAll([releaseEndpointStatement(1, NOW)]);
  await enqueue(store, 1);
  assert.deepEqual(await readDue(store, NOW * 2), []);
});

forEachEngine('a moved endpoint belongs to the shard of its new origin', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  await enqueue(store, 1);
  await store.writeAll([moveEndpointStatement(1, 'https://example.com')]);
  const [due] = await readDue(store);
  assert.deepEqual([due?.origin, due?.shard], ['https://example.com', shardOf('https://example.com')]);
});

forEachEngine('the delivery of a test is claimed once, and left to the workers after that', async (store) => {
  await takeAllShards(store, OWNER, NOW);
  const id = await enqueue(store, 1, NOW, NOW + 30_000);
  assert.deepEqual(await readDue(store), []);
  assert.equal(await reserveTest(store, id, NOW + 20_000), 1);
  assert.equal((await readWaiting(store, [{ hookId: 1, limit: 5 }], NOW)).length, 0);
  await store.writeAll(attemptResultStatements([result(1, id, { epoch: -1, foundDueAtMs: NOW + 20_000 })], 'missing'));
  assert.equal(await reserveTest(store, id, NOW + 20_000), undefined);
  assert.deepEqual(await store.read(stateOfSql, [id]), [{ state: 'succeeded', attempts: 1 }]);
});

forEachEngine('a doubtful success is pending again', async (store) => {
  const epochs = await takeAllShards(store, OWNER, NOW);
  const id = await enqueue(store, 1);
  await store.writeAll(attemptResultStatements([result(1, id, { epoch: epochs.get(shardOf(ORIGIN))! })], OWNER));
  assert.equal(await reopenUnverified(store, [id, 12345], NOW), 1);
  assert.deepEqual(await store.read(stateOfSql, [id]), [{ state: 'pending', attempts: 1 }]);
});

test('endpointStatements() locks rows in ascending order of hooks, whatever changes them, and a hook in the order of its changes', () => {
  const changes: EndpointChange[] = [
    { kind: 'cancel', hookId: 9 },
    { kind: 'health', hookId: 5, ...FINE },
    { kind: 'move', hookId: 7, origin: ORIGIN },
    { kind: 'wake origin', origin: ORIGIN },
    { kind: 'disable', hookId: 7, reason: 'gone' },
    { kind: 'health', hookId: 4, ...FINE },
  ];
  const sleeps = [8, 5, 3].map((hookId) => ({ hookId, version: 1 }));
  const steps = endpointStatements(changes, sleeps, NOW);
  assert.deepEqual(
    steps.map(({ statement: { name }, parameters }) => [name, parameters[0]]),
    [
      ['endpoint_rest_1', 3],
      ['endpoint_change_2', 4],
      ['endpoint_rest_1', 5],
      ['endpoint_move', 7],
      ['endpoint_hold', 7],
      ['endpoint_rest_1', 8],
      ['endpoint_cancel', 9],
    ],
  );
});
