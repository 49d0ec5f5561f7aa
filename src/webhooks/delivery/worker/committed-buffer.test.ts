import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStillWorld, type StillWorld } from '../../../../test/support/basics/still-world.ts';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../../test/support/store/engines.ts';
import {
  commitTestDelivery,
  enqueueTestDelivery,
  insertTestHook,
} from '../../../../test/support/webhooks/deliveries-store.ts';
import { startTestWorker } from '../../../../test/support/webhooks/delivery-worker.ts';
import { makeDueRow } from '../../../../test/support/webhooks/due-hook-queue.ts';
import { createInFlight } from '../../../database/in-flight.ts';
import type { Store } from '../../../database/store.ts';
import { findHookById } from '../../hooks/hook-store.ts';
import { countEnqueue, dropDelivery, type HookQueue, recordRead, startDraining } from '../hook-queues/hook-queue.ts';
import {
  admit,
  createHookQueueTable,
  ensureHookQueue,
  type HookQueueTable,
  LINGER_MS,
  listSleeps,
  pickJob,
  pickJobs,
} from '../hook-queues/hook-queue-table.ts';
import type { AttemptResult } from '../queue/attempt-result-store.ts';
import type { CommittedDelivery } from '../queue/committed-delivery.ts';
import type { ContentRow } from '../queue/delivery-queue-store.ts';
import { createCommittedBuffer } from './committed-buffer.ts';
import { beginAttempts, type DispatchDependencies, runDispatchCycle } from './dispatch-cycle.ts';
import { sendDelivery } from './send-delivery.ts';
import { createWakeSignal } from './wake-signal.ts';

forEachEngine('a delivery that its own process has committed is sent without a read', async (store) => {
  const isSeen = Promise.withResolvers<void>();
  // The first attempt is under way all the time, so its hook queue stays in memory.
  await using receiver = await startReceiver((_, response, index) => {
    if (index > 0) response.end('ok');
    else void isSeen.promise.then(() => response.end('ok'));
  });
  const { url } = receiver;
  await insertTestHook(store, { id: 1, url });
  let hasArrived = false;
  const readAll: Store['readAll'] = async (statements) => {
    if (hasArrived && statements.length > 0) await isSeen.promise;
    return await store.readAll(statements);
  };
  await using worker = startTestWorker({ ...store, readAll });
  // Also when the test fails, since the worker waits for its reads when it stops.
  using _end = { [Symbol.dispose]: () => isSeen.resolve() };
  await enqueueTestDelivery(store, { hookId: 1, url });
  worker.wake();
  await receiver.waitFor(1);
  hasArrived = true;
  const body = Buffer.from('{"text":"grüß"}');
  const hook = await findHookById(store, 1);
  const { committed, versions } = await commitTestDelivery(store, hook!, { hookId: 1, url, body });
  worker.takeCommitted([committed], versions);
  await receiver.waitFor(2);
  assert.deepEqual(receiver.received[1]?.body, body);
});

const NOW_MS = 1_000_000;
const NO_VERSIONS: ReadonlyMap<number, number> = new Map();

function createContent(id: number, createdAtMs: number): ContentRow {
  return {
    id,
    hook_id: 1,
    attempts: 0,
    schedule_from: 0,
    due_at_ms: createdAtMs,
    created_at_ms: createdAtMs,
    event_kind: 'push',
    uuid: String(id),
    body: Buffer.from('{}'),
    url: 'https://example.com/hook',
    encryption_type: 1,
    profile: 'gitcode',
    secret: null,
    previous_secret: null,
    previous_until_ms: null,
    disabled_at_ms: null,
    is_test: 0,
    generation: 0,
  };
}

function describe(content: ContentRow): CommittedDelivery {
  return { hookId: content.hook_id, shard: 3, content };
}

interface LoadedTable {
  readonly world: StillWorld;
  readonly table: HookQueueTable;
  readonly hookQueue: HookQueue;
  readonly another: HookQueue;
}

/** Two hook queues whose last read found delivery 7 only. */
function createLoadedTable(): LoadedTable {
  const world = createStillWorld(NOW_MS - 100);
  const table = createHookQueueTable(world);
  const [hookQueue, another] = [
    ensureHookQueue(table, makeDueRow({ hook_id: 1 }))!,
    ensureHookQueue(table, makeDueRow({ hook_id: 2 }))!,
  ];
  world.moveMs(100);
  for (const one of [hookQueue, another])
    recordRead(one, { hasMoreDue: { first: false, retry: false }, enqueues: 0, lastId: 7 }, world.monotonicMs());
  return { world, table, hookQueue, another };
}

type Change = (hookQueue: HookQueue, table: HookQueueTable) => void;
const cases: [title: string, content: ContentRow, change: Change, isTaken: boolean][] = [
  ['is taken into memory', createContent(8, NOW_MS), () => {}, true],
  ['is read when a read has passed its id', createContent(7, NOW_MS), () => {}, false],
  ['is read when its hook was disabled', { ...createContent(8, NOW_MS), disabled_at_ms: 1 }, () => {}, false],
  ['is read when its commit took long', createContent(8, NOW_MS - 250), () => {}, false],
  ['is read when it is older than the entry of its hook queue', createContent(8, NOW_MS - 100), () => {}, false],
  ['is read when another one waits in the store', createContent(8, NOW_MS), countEnqueue, false],
  ['is read when another one was put back', createContent(8, NOW_MS), (one) => dropDelivery(one, 7), false],
  [
    'is read when not all that is due has been read',
    createContent(8, NOW_MS),
    (one) => recordRead(one, { hasMoreDue: { first: true, retry: false }, enqueues: 0, lastId: 7 }, 0),
    false,
  ],
  ['is left to the next worker when its hook queue drains', createContent(8, NOW_MS), startDraining, false],
  [
    'is read when many wait before it',
    createContent(80, NOW_MS),
    (one, table) => {
      for (let id = 8; id < 24; id += 1) admit(table, one, { hook_id: 1, id, lane: 0, body_bytes: 2 });
    },
    false,
  ],
];
for (const [title, content, change, isTaken] of cases)
  test(`a committed delivery ${title}`, () => {
    const { table, hookQueue } = createLoadedTable();
    change(hookQueue, table);
    const committed = createCommittedBuffer(table);
    const one = describe(content);
    assert.deepEqual(committed.add([one], NO_VERSIONS), isTaken ? [] : [one]);
    assert.deepEqual(committed.takeContents(), isTaken ? [content] : []);
    assert.deepEqual(committed.takeContents(), []);
    assert.equal(hookQueue.deliveryIds.has(content.id), isTaken);
    if (isTaken)
      assert.deepEqual(
        pickJobs(table).map(({ id }) => id),
        [content.id],
      );
  });

test('a committed delivery is taken into memory while many retries of its hook wait there', () => {
  const { table, hookQueue } = createLoadedTable();
  for (let id = 8; id < 72; id += 1) admit(table, hookQueue, { hook_id: 1, id, lane: 1, body_bytes: 2 });
  recordRead(hookQueue, { hasMoreDue: { first: false, retry: true }, enqueues: 0, lastId: 71 }, 0);
  const committed = createCommittedBuffer(table);
  assert.deepEqual(committed.add([describe(createContent(80, NOW_MS))], NO_VERSIONS), []);
  assert.equal(pickJob(table)?.lane, 'retry', 'a retry has the first of five turns');
  assert.equal(pickJob(table)?.id, 80);
});

test('a delivery of the same commit as an older one that has to be read is read after it', () => {
  const { table } = createLoadedTable();
  const committed = createCommittedBuffer(table);
  const both = [{ hookId: 1, shard: 3, content: undefined }, describe(createContent(9, NOW_MS))];
  assert.deepEqual(committed.add(both, NO_VERSIONS), both);
});

test('a committed delivery does not wait while others are read, and stays after an earlier one of its hook', async () => {
  const { table, hookQueue, another } = createLoadedTable();
  const committed = createCommittedBuffer(table);
  const isRead = Promise.withResolvers<void>();
  const sent: number[] = [];
  const readAll: Store['readAll'] = async (statements) => {
    await isRead.promise;
    return statements.map(() => [{ ...createContent(8, NOW_MS), hook_id: 2 }]);
  };
  const dependencies = {
    store: { readAll, makeIds: async (count: number) => Array.from({ length: count }, (_, index) => index) },
    table,
    committed,
    world: table.world,
    leases: { areHeld: () => true, epochOf: () => 1 },
    sends: createInFlight(),
    writer: { add: () => {}, wake: () => {} },
    signal: createWakeSignal(),
    makeAttempt: async ({ id }: ContentRow) => {
      sent.push(id);
      return await new Promise(() => {});
    },
  };
  admit(table, another, { hook_id: 2, id: 8, lane: 0, body_bytes: 2 });
  const later = describe({ ...createContent(10, NOW_MS), hook_id: 2 });
  committed.add([describe(createContent(9, NOW_MS)), later], NO_VERSIONS);
  const begun = beginAttempts(dependencies as unknown as DispatchDependencies, []);
  await new Promise(setImmediate);
  assert.deepEqual(sent, [9]);
  assert.ok(hookQueue.deliveryIds.has(9));
  isRead.resolve();
  await begun;
  assert.deepEqual(sent, [9, 8, 10]);
});

test('a committed delivery is read when its hook queue is not in memory, or its body is large', () => {
  const { table } = createLoadedTable();
  const committed = createCommittedBuffer(table);
  const both = [describe({ ...createContent(8, NOW_MS), hook_id: 3 }), { hookId: 1, shard: 3, content: undefined }];
  assert.deepEqual(committed.add(both, NO_VERSIONS), both);
});

interface Scanned {
  readonly reports: readonly number[];
  readonly rowVersion: number;
  readonly afterMs: number;
}

const scans: [title: string, scanned: Scanned, state: string][] = [
  ['reads nothing after own enqueues', { reports: [2, 3], rowVersion: 3, afterMs: 0 }, 'loaded'],
  ['reads nothing for a row that is older than the report', { reports: [2, 3], rowVersion: 2, afterMs: 0 }, 'loaded'],
  ['reads what another process enqueued after them', { reports: [2, 3], rowVersion: 4, afterMs: 0 }, 'loading'],
  ['reads what another process enqueued between them', { reports: [2, 4], rowVersion: 4, afterMs: 0 }, 'loading'],
  ['reads what another process enqueued before them', { reports: [3, 4], rowVersion: 4, afterMs: 0 }, 'loading'],
  ['reads own enqueues that were not reported', { reports: [], rowVersion: 2, afterMs: 0 }, 'loading'],
  ['reads again a second later, as retries become due', { reports: [2, 3], rowVersion: 3, afterMs: 1000 }, 'loading'],
  ['reads nothing a second later without an enqueue', { reports: [], rowVersion: 1, afterMs: 1000 }, 'loaded'],
];
for (const [title, { reports, rowVersion, afterMs }, state] of scans)
  test(`a scan ${title}`, () => {
    const { table, hookQueue, world } = createLoadedTable();
    const committed = createCommittedBuffer(table);
    for (const [index, version] of reports.entries())
      committed.add([describe(createContent(8 + index, NOW_MS))], new Map([[1, version]]));
    assert.equal(hookQueue.state, 'loaded');
    world.moveMs(afterMs);
    ensureHookQueue(table, makeDueRow({ hook_id: 1, version: rowVersion }));
    assert.equal(hookQueue.state, state);
  });

test('a hook queue may sleep in the version that the report of a commit gave it', () => {
  const { table, hookQueue, world } = createLoadedTable();
  const committed = createCommittedBuffer(table);
  committed.add([describe(createContent(8, NOW_MS))], new Map([[1, 2]]));
  assert.deepEqual(pickJobs(table).length, 1);
  const stored = { hookId: 1, deliveryId: 8, epoch: 1 };
  world.moveMs(LINGER_MS);
  const sleeps = listSleeps(table, [stored as AttemptResult]);
  assert.deepEqual(sleeps, [
    { hookId: 1, version: 2, shard: 3, epoch: 1 },
    { hookId: 2, version: 1, shard: 3, epoch: 1 },
  ]);
  assert.equal(hookQueue.version, 2);
});

for (const [title, areHeld, state] of [
  ['stays in memory while the leases have lapsed', false, 'loading'],
  ['drains when its shard belongs to another worker', true, 'draining'],
] as const)
  test(`a hook queue without an epoch ${title}`, async () => {
    const { world, table, hookQueue, another } = createLoadedTable();
    admit(table, hookQueue, { hook_id: 1, id: 8, lane: 0, body_bytes: 2 });
    admit(table, hookQueue, { hook_id: 1, id: 9, lane: 0, body_bytes: 2 });
    const job = pickJob(table)!;
    const leases = { areHeld: () => areHeld, epochOf: () => undefined };
    const dependencies = { table, leases, world } as unknown as DispatchDependencies;
    const results = await sendDelivery(dependencies, { job, content: createContent(job.id, NOW_MS), attemptId: 1 });
    assert.deepEqual(results, { changes: [] });
    assert.equal(hookQueue.state, state);
    assert.equal(table.scheduler.countWaiting(1, 'first'), areHeld ? 0 : 1);
    assert.equal(another.state, 'loaded');
  });

test('while the leases have lapsed nothing is read or picked, and what was committed is read when it is sent', async () => {
  const { world, table, hookQueue } = createLoadedTable();
  const committed = createCommittedBuffer(table);
  committed.add([describe(createContent(8, NOW_MS))], NO_VERSIONS);
  countEnqueue(hookQueue);
  const leases = { areHeld: () => false };
  const dependencies = { table, leases, world, committed } as unknown as DispatchDependencies;
  await runDispatchCycle(dependencies);
  await beginAttempts(dependencies, []);
  assert.equal(table.scheduler.countWaiting(1, 'first'), 1);
  assert.deepEqual(committed.takeContents(), []);
});
