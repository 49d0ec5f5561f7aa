import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { enqueueTestDelivery, insertTestHook } from '../../../test/support/webhooks/deliveries-store.ts';
import { statement } from '../../database/store.ts';
import { cancelHookQueueStatement, holdHookQueueStatement } from '../delivery/queue/delivery-store.ts';
import { changeHook, type HookChange } from './hook-change-store.ts';
import { findHookById, removeHook } from './hook-store.ts';

const url = 'http://127.0.0.1:9/';
const NOW = Date.UTC(2026, 5, 1);
const hookQueueSql = statement('test-whole-hook-queue', 'SELECT * FROM endpoint_queue');
const bytes = (text: string) => new Uint8Array(Buffer.from(text));

const encryptedAs = (secret: Uint8Array) => ({ secret, previous_secret: null, previous_until_ms: null });
const replaceSecret = (expected: Uint8Array): HookChange => ({
  url,
  encryptionType: undefined,
  profile: undefined,
  events: {},
  secret: encryptedAs(bytes('new')),
  expected: encryptedAs(expected),
  switch: 'off',
  nowMs: NOW,
});

forEachEngine(
  'a change that finds the hook changed or deleted meanwhile leaves the hook queue as it is',
  async (store) => {
    await insertTestHook(store, { id: 1, url, secret: bytes('present') });
    await enqueueTestDelivery(store, { hookId: 1, url });
    const before = await store.read(hookQueueSql);
    const statements = { ofHookQueue: [holdHookQueueStatement(1, NOW)], records: [], switchRecords: [] };
    assert.equal(await changeHook(store, { id: 1, change: replaceSecret(bytes('former')) }, statements), undefined);
    assert.equal(await changeHook(store, { id: 2, change: replaceSecret(bytes('present')) }, statements), undefined);
    const cancel = { ofHookQueue: [cancelHookQueueStatement(1, NOW)], records: [] };
    await removeHook(store, 2, cancel);
    assert.deepEqual(await store.read(hookQueueSql), before);

    const changed = await changeHook(store, { id: 1, change: replaceSecret(bytes('present')) }, statements);
    assert.equal(changed?.hook.disabledAtMs, NOW);
    await removeHook(store, 1, cancel);
    assert.equal(await findHookById(store, 1), undefined);
    const [{ held_since_ms, canceled_at_ms } = {}] = (await store.read(hookQueueSql)) as Record<string, number>[];
    assert.deepEqual([held_since_ms, canceled_at_ms], [NOW, NOW]);
  },
);
