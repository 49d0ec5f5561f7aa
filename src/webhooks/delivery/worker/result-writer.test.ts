import assert from 'node:assert/strict';
import { forEachEngine } from '../../../../test/support/engines.ts';
import type { Store } from '../../../database/store.ts';
import { createLog } from '../../../telemetry/log.ts';
import { realWorld } from '../../../world.ts';
import type { HookQueueChange } from '../queue/hook-queue-change-store.ts';
import { createHookQueueTable } from './hook-queue-table.ts';
import { createResultWriter } from './result-writer.ts';
import { createWakeSignal } from './wake-signal.ts';

/** A writer, and the transactions that it stores; those before `failures` are used up fail. */
function createWriter(store: Store, failures = 0) {
  const transactions: string[][] = [];
  const requests: string[] = [];
  const writeAll: Store['writeAll'] = async (steps) => {
    transactions.push(steps.map((step) => step.statement.name));
    if (transactions.length <= failures) throw new Error('The database is away');
    return await store.writeAll(steps);
  };
  const writer = createResultWriter({
    store: { ...store, writeAll },
    world: realWorld,
    log: createLog('silent'),
    workerId: 'worker-1',
    table: createHookQueueTable(realWorld),
    scan: { request: () => requests.push('scan') },
    signal: createWakeSignal(),
  });
  return { writer, transactions, requests };
}

const change = (hookId: number): HookQueueChange => ({ kind: 'cancel', hookId });

forEachEngine('results that come together are stored in one transaction', async (store) => {
  const { writer, transactions } = createWriter(store);
  writer.add({ changes: [change(1)] });
  writer.add({ changes: [change(2)] });
  await writer.flush();
  assert.deepEqual(transactions, [['endpoint_cancel', 'endpoint_cancel']]);
});

forEachEngine('a transaction that fails is stored again as it is', async (store) => {
  const { writer, transactions } = createWriter(store, 2);
  writer.add({ changes: [change(1)] });
  await writer.flush();
  assert.deepEqual(transactions, [['endpoint_cancel'], ['endpoint_cancel'], ['endpoint_cancel']]);
});

forEachEngine('a scan is requested once a hook queue may be due that was not', async (store) => {
  const { writer, requests } = createWriter(store);
  writer.add({ changes: [change(1)] });
  await writer.flush();
  assert.deepEqual(requests, []);
  writer.add({ changes: [{ kind: 'wake origin', origin: 'https://example.com' }] });
  await writer.flush();
  assert.deepEqual(requests, ['scan']);
});

forEachEngine('rows of hooks are changed after all rows of hook queues', async (store) => {
  const { writer, transactions } = createWriter(store);
  writer.add({ changes: [{ kind: 'disable', hookId: 1, reason: 'failing' }, change(2)] });
  await writer.flush();
  assert.deepEqual(transactions, [['endpoint_hold', 'endpoint_cancel', 'hook_disable_failing']]);
});
