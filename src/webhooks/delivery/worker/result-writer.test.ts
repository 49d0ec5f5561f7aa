import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import pg from 'pg';
import { waitUntil } from '../../../../test/support/basics/wait-until.ts';
import { startCutProxy } from '../../../../test/support/network/cut-proxy.ts';
import {
  createStorePlace,
  findReasonToSkip,
  forEachEngine,
  openTestStore,
} from '../../../../test/support/store/engines.ts';
import { insertTestHook, takeAllShards } from '../../../../test/support/webhooks/deliveries-store.ts';
import { enqueue, NOW, result } from '../../../../test/support/webhooks/delivery-queue.ts';
import { waitForHook } from '../../../../test/support/webhooks/delivery-worker.ts';
import { type Store, statement } from '../../../database/store.ts';
import { createLog } from '../../../telemetry/log.ts';
import { realWorld } from '../../../world.ts';
import { createHookQueueTable } from '../hook-queues/hook-queue-table.ts';
import { OUTSIDE_SHARDS } from '../queue/attempt-result-store.ts';
import type { HookQueueChange } from '../queue/hook-queue-change-store.ts';
import type { SendReport } from '../send/send-report.ts';
import { createResultWriter } from './result-writer.ts';
import { createWakeSignal } from './wake-signal.ts';

/** A writer, and the transactions that it stores. The first `failures` transactions fail. */
function createWriter(store: Store, failures = 0) {
  const transactions: string[][] = [];
  const requests: string[] = [];
  const lines: string[] = [];
  const writeAll: Store['writeAll'] = async (steps, options) => {
    transactions.push(steps.map((step) => step.statement.name));
    if (transactions.length <= failures) throw new Error('The database is away');
    return await store.writeAll(steps, options);
  };
  const writer = createResultWriter({
    store: { ...store, writeAll },
    world: realWorld,
    log: createLog('warn', { write: (line) => lines.push(readLine(line)) }),
    workerId: 'worker-1',
    table: createHookQueueTable(realWorld),
    scan: { request: () => requests.push('scan') },
    signal: createWakeSignal(),
  });
  return { writer, transactions, requests, lines };
}

const REPORT = { status: 500, reason: null, responseBody: Buffer.from('') } as unknown as SendReport;
const change = (hookId: number): HookQueueChange => ({ kind: 'cancel', hookId });

forEachEngine('results that come together are stored in one transaction', async (store) => {
  const { writer, transactions } = createWriter(store);
  writer.add({ changes: [change(1)] });
  writer.add({ changes: [change(2)] });
  await writer.flush();
  assert.deepEqual(transactions, [['endpoint-cancel', 'endpoint-cancel']]);
});

forEachEngine('a transaction that fails is stored again as it is, and its failures are logged once', async (store) => {
  const { writer, transactions, lines } = createWriter(store, 2);
  writer.add({ changes: [change(1)] });
  await writer.flush();
  assert.deepEqual(transactions, [['endpoint-cancel'], ['endpoint-cancel'], ['endpoint-cancel']]);
  assert.deepEqual(lines, [
    'Cannot store outcomes of deliveries; trying again: results of deliveries',
    'Outcomes of deliveries are stored again: results of deliveries',
  ]);
});

forEachEngine('a flush stores what was added before it, and does not wait for what comes after', async (store) => {
  const transactions: number[] = [];
  // Every commit brings new results and requests, so that the writer is never idle.
  const writeAll: Store['writeAll'] = async (steps, options) => {
    transactions.push(steps.length);
    if (transactions.length < 20) writer.add({ changes: [change(2)] });
    return await store.writeAll(steps, options);
  };
  const { writer } = createWriter({ ...store, writeAll });
  writer.add({ changes: [change(1)] });
  await writer.flush();
  const stored = transactions.length;
  assert.ok(stored >= 1 && stored <= 3, `${stored} transactions`);
  while (transactions.length < 20) await writer.flush();
  await writer.flush();
});

forEachEngine('a flush waits for both results of one delivery, which are stored one after the other', async (store) => {
  await takeAllShards(store, 'worker-1', NOW);
  const deliveryId = await enqueue(store, 7);
  const { writer, transactions } = createWriter(store);
  for (let count = 0; count < 2; count += 1)
    writer.add({
      attempt: { result: result(7, deliveryId, { nextState: 'pending' }), report: REPORT, url: null },
      changes: [],
    });
  await writer.flush();
  assert.equal(transactions.length, 2);
});

forEachEngine('an answer of the former URL that comes last does not replace that of the present one', async (store) => {
  await takeAllShards(store, 'worker-1', NOW);
  const [former, present] = ['http://127.0.0.1:9/former', 'http://127.0.0.1:9/present'];
  await insertTestHook(store, { id: 7, url: present });
  const { writer } = createWriter(store);
  const ids = [await enqueue(store, 7), await enqueue(store, 7)] as const;
  const answer = (id: number, url: string, status: number) =>
    writer.add({ attempt: { result: result(7, id), report: { ...REPORT, status }, url }, changes: [] });
  answer(ids[0], present, 200);
  answer(ids[1], former, 500);
  await writer.flush();
  assert.equal((await waitForHook(store, 7)).result_code, 200);
});

forEachEngine('a scan is requested once a hook queue may be due that was not', async (store) => {
  const { writer, requests } = createWriter(store);
  writer.add({ changes: [change(1)] });
  await writer.flush();
  assert.deepEqual(requests, []);
  writer.add({ changes: [{ kind: 'move', hookId: 1, origin: 'https://example.com', shard: 0, epoch: 1 }] });
  await writer.flush();
  assert.deepEqual(requests, ['scan']);
});

forEachEngine('a batch has a bounded number of changes, and all of each hook that it has any of', async (store) => {
  const { writer, transactions } = createWriter(store);
  const hookIds = Array.from({ length: 600 }, (_, index) => index + 1);
  writer.add({ changes: [...hookIds, 1].map(change) });
  await writer.flush();
  assert.deepEqual(
    transactions.map(({ length }) => length),
    [257, 256, 88],
  );
});

forEachEngine('the changes of a hook are stored with its result, however many of others wait', async (store) => {
  await takeAllShards(store, 'worker-1', NOW);
  const deliveryId = await enqueue(store, 7);
  const { writer, transactions } = createWriter(store);
  writer.add({ changes: Array.from({ length: 300 }, (_, index) => change(index + 100)) });
  const ended = result(7, deliveryId, { nextState: 'pending' });
  writer.add({ attempt: { result: ended, report: REPORT, url: null }, changes: [change(7)] });
  await writer.flush();
  const cancels = transactions.map((names) => names.filter((name) => name === 'endpoint-cancel').length);
  assert.deepEqual(cancels, [257, 44]);
});

forEachEngine('rows of hooks are changed after all rows of hook queues', async (store) => {
  const { writer, transactions } = createWriter(store);
  const under = { shard: 0, epoch: 1, generation: 0 };
  writer.add({ changes: [{ kind: 'disable', hookId: 1, reason: 'failing', under }, change(2)] });
  await writer.flush();
  assert.deepEqual(transactions, [['endpoint-hold-failing', 'endpoint-cancel', 'hook-disable-failing']]);
});

const attemptsSql = statement<{ attempts: number; logged: number; fails: number }>(
  'test-attempts-and-log',
  `SELECT attempts, (SELECT COUNT(*) FROM delivery_attempts) AS logged, (SELECT fails FROM endpoint_queue) AS fails
   FROM deliveries`,
);

test('an attempt whose commit outlives its connection is counted once', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  const place = await createStorePlace('postgres');
  await using store = await openTestStore(place);
  await takeAllShards(store, 'worker-1', NOW);
  const deliveryId = await enqueue(store, 7);
  await using proxy = await startCutProxy(place.databaseUrl!);
  await using cutStore = await openTestStore({ ...place, databaseUrl: proxy.databaseUrl });
  // Within a transaction the list of server processes does not change, so another connection reads it.
  const [locker, watcher] = [new pg.Client(place.databaseUrl), new pg.Client(place.databaseUrl)];
  await Promise.all([locker.connect(), watcher.connect()]);
  /** The server process that waits for a lock of process `pid`. */
  const findWaiting = async (pid: number): Promise<number | undefined> => {
    const waiting = 'SELECT pid FROM pg_stat_activity WHERE $1::int = ANY(pg_blocking_pids(pid))';
    return (await watcher.query<{ pid: number }>(waiting, [pid])).rows[0]?.pid;
  };
  const { rows } = await locker.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  await locker.query('BEGIN');
  await locker.query('SELECT 1 FROM endpoint_queue FOR UPDATE');

  const { writer } = createWriter(cutStore);
  const manual = result(7, deliveryId, { nextState: 'pending', ...OUTSIDE_SHARDS });
  const refused = { ...manual, attempt: { ...manual.attempt, outcome: 'refused', status: 500 } };
  writer.add({ attempt: { result: refused, report: REPORT, url: null }, changes: [] });
  // The first transaction has counted the attempt and waits for the hook queue.
  const first = await waitUntil(() => findWaiting(rows[0]!.pid));
  proxy.cut();
  await waitUntil(() => findWaiting(first));
  await locker.query('COMMIT');
  await writer.flush();
  assert.deepEqual(await store.read(attemptsSql), [{ attempts: 1, logged: 1, fails: 1 }]);
  await Promise.all([locker.end(), watcher.end()]);
  rmSync(place.dataDir, { recursive: true, force: true });
});

/** The message of a line, and what it is about. */
function readLine(line: string): string {
  const { msg, what } = JSON.parse(line) as { readonly msg: string; readonly what?: string };
  return [msg, what].join(': ');
}
