/** A signed-in person reads pages while PostgreSQL takes no writes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import {
  createPerson,
  request,
  startAuthorizationServer,
} from '../../../test/support/authorization/authorization-server.ts';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { findReasonToSkip, openTestStore } from '../../../test/support/store/engines.ts';
import { createTestDatabase, startPostgresCluster } from '../../../test/support/store/postgres-cluster.ts';

test('a page that only reads is shown while PostgreSQL is read-only', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  await using undo = new AsyncDisposableStack();
  const cluster = await startPostgresCluster();
  undo.defer(() => cluster.stop());
  const databaseUrl = await createTestDatabase(cluster.socketDir, 'reading');
  await using store = await openTestStore({ dataDir: '', databaseUrl });
  await using server = await startAuthorizationServer(store);
  const { cookie } = await createPerson(server);
  const admin = new pg.Client({ connectionString: databaseUrl });
  await admin.connect();
  undo.defer(() => admin.end());
  await admin.query('ALTER SYSTEM SET default_transaction_read_only = on');
  await admin.query('SELECT pg_reload_conf()');
  await waitUntil(() =>
    createPerson(server).then(
      () => false,
      () => true,
    ),
  );
  // The session was not marked as seen in that time.
  server.advance(10 * 60_000);
  assert.equal((await request(`${server.url}/account`, { headers: { cookie } })).status, 200);
});
