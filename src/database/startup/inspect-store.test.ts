import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { test } from 'node:test';
import { createEmptyStore, createStorePlace } from '../../../test/support/store/engines.ts';
import { createLog } from '../../telemetry/log.ts';
import { realWorld } from '../../world.ts';
import { backupSqlite } from '../maintenance/backup.ts';
import { migrations } from '../migrations/list.ts';
import { statement } from '../store.ts';
import { inspectStore } from './inspect-store.ts';
import { databaseFileOf } from './open-store.ts';

const countSql = statement<{ count: number }>(
  'test-count-migrations',
  'SELECT COUNT(*) AS count FROM schema_migrations',
);

test('inspectStore() leaves each byte of a restored backup as it is', async () => {
  const [place, restored] = [await createStorePlace('sqlite'), await createStorePlace('sqlite')];
  await createEmptyStore(place.dataDir);
  const file = databaseFileOf(restored.dataDir);
  backupSqlite(databaseFileOf(place.dataDir), file);
  const before = readFileSync(file);
  const log = createLog('silent');
  const store = await inspectStore({ ...restored, migrations, log, world: realWorld });
  assert.ok(store !== undefined);
  const [row] = await store.read(countSql);
  assert.ok(row !== undefined && row.count > 0);
  await store[Symbol.asyncDispose]();
  assert.ok(readFileSync(file).equals(before));
  assert.deepEqual(readdirSync(restored.dataDir), ['trivet.db']);
  for (const { dataDir } of [place, restored]) rmSync(dataDir, { recursive: true });
});
