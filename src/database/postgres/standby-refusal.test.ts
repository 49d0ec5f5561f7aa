/** HAProxy and Patroni may route to a server shortly before its promotion has ended: its refusals do not fail the call. */
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import pg from 'pg';
import { findReasonToSkip, openTestStore } from '../../../test/support/store/engines.ts';
import { findNoteSql, insertWithinLimit, noteMigration } from '../../../test/support/store/note-store.ts';
import { createTestDatabase, startPostgresCluster } from '../../../test/support/store/postgres-cluster.ts';
import { realWorld, type World } from '../../world.ts';
import { migrations } from '../migrations/list.ts';

test('a serializable transaction that a standby refuses is sent again until the standby is the primary', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  await using undo = new AsyncDisposableStack();
  const cluster = await startPostgresCluster({ isDurable: true });
  undo.defer(() => cluster.stop());
  const databaseUrl = await createTestDatabase(cluster.socketDir, 'standby');
  let onSleep = (): void => {};
  let promoted: Promise<unknown> | undefined;
  // The promotion ends during the pause that the store makes between two tries.
  const world: World = {
    ...realWorld,
    sleep: async () => {
      onSleep();
      await promoted;
    },
  };
  const options = { migrations: [...migrations, noteMigration], world };
  await using store = await openTestStore({ dataDir: '', databaseUrl }, options);

  await cluster.kill();
  const standbySignal = join(cluster.socketDir, 'data', 'standby.signal');
  writeFileSync(standbySignal, '');
  chmodSync(standbySignal, 0o666);
  await cluster.start();
  const admin = new pg.Client({ connectionString: databaseUrl });
  await admin.connect();
  undo.defer(() => admin.end());
  await assert.rejects(admin.query('BEGIN ISOLATION LEVEL SERIALIZABLE'), { code: '0A000' });

  const hasPromoted = Promise.withResolvers<void>();
  promoted = hasPromoted.promise;
  const hasWaited = new Promise<void>((resolve) => {
    onSleep = resolve;
  });
  const inserted = store.call(insertWithinLimit, { id: 'one', limit: 1 });
  await Promise.race([hasWaited, inserted]);
  await admin.query('SELECT pg_promote()');
  hasPromoted.resolve();
  assert.deepEqual(await inserted, { isInserted: true });
  assert.equal((await store.read(findNoteSql, ['one'])).length, 1);
});
