/** Requests for a repository that is deleted at the same time. */
import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { startManagement, withDoors } from '../../../test/support/webhooks/webhook-management.ts';
import { type Store, statement } from '../../database/store.ts';
import { SWEEP_BATCH } from '../../database/sweep.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { createHook } from '../management/manage-hook.ts';
import { removeRepositoryOnce } from './repository-store.ts';

const countEventsSql = statement<{ count: number }>('test-count-events', 'SELECT COUNT(*) AS count FROM events');
const event = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', Date.UTC(2026, 0, 1));

withDoors('a hook of a repository that was just deleted is refused as unknown, not as a conflict', async (server) => {
  const repository = await server.management.access.find('grace', 'doors');
  assert.equal((await server.call('DELETE', '/repos/grace/doors')).status, 204);
  await assert.rejects(
    createHook(server.management, { repository, actor: COMMAND_LINE }, { url: 'http://127.0.0.1:9001/' }),
    {
      code: 'not_found',
      message: 'Project not found:grace/doors',
    },
  );
});

withDoors(
  'an event of a repository that was deleted meanwhile is refused and not stored, other events of its batch are',
  async (server, store) => {
    const { intake, access } = server.management;
    const gone = await access.find('grace', 'doors');
    assert.equal((await server.call('DELETE', '/repos/grace/doors')).status, 204);
    assert.equal((await server.call('POST', '/user/repos', { json: { name: 'windows' } })).status, 201);
    const staying = await access.find('grace', 'windows');
    const answers = await Promise.allSettled(
      [gone, staying, gone, staying].map((repository) =>
        intake.accept({ repository, event, source: 'api', idempotencyKey: undefined }),
      ),
    );
    assert.deepEqual(
      answers.map(({ status }) => status),
      ['rejected', 'fulfilled', 'rejected', 'fulfilled'],
    );
    for (const answer of answers) if (answer.status === 'rejected') assert.equal(answer.reason.code, 'not_found');
    assert.deepEqual(await store.read(countEventsSql), [{ count: 2 }]);
  },
);

const auditedDeletionsSql = statement<{ kind: string; details: string }>(
  'test-audited-deletions',
  "SELECT kind, details FROM audit_events WHERE kind IN ('hook_deleted', 'repository_deleted') ORDER BY kind, details",
);

withDoors('a deletion is recorded once for the repository and once for each hook', async (server, store) => {
  for (const port of [9001, 9002, 9003])
    await server.call('POST', '/repos/grace/doors/hooks', { json: { url: `http://127.0.0.1:${port}/` } });
  const hooks: { id: number }[] = (await server.call('GET', '/repos/grace/doors/hooks')).body;
  const first = `/repos/grace/doors/hooks/${hooks[0]!.id}`;
  await Promise.all([1, 2, 3].map(() => server.call('DELETE', first)));
  await Promise.all([1, 2, 3].map(() => server.call('DELETE', '/repos/grace/doors')));
  const repository = 'grace/doors';
  assert.deepEqual(
    (await store.read(auditedDeletionsSql)).map(({ kind, details }) => ({ kind, ...JSON.parse(details) })),
    [
      ...hooks.map(({ id }) => ({ kind: 'hook_deleted', repository, hook: id })),
      { kind: 'repository_deleted', repository },
    ],
  );
});

const fillEventsSql = statement(
  'test-fill-events',
  `INSERT INTO events (id, repository_id, kind, source, content, created_at_ms)
   WITH RECURSIVE numbers (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)
   SELECT n + $3, $1, 'push', 'api', '{}', 1 FROM numbers`,
);
const fillKeysSql = statement(
  'test-fill-event-keys',
  `INSERT INTO event_keys (repository_id, idempotency_key, fingerprint, answer, expires_at_ms)
   WITH RECURSIVE numbers (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)
   SELECT $1, 'key-' || n, '', '{}', 1 FROM numbers`,
);

interface Deletion {
  /** The number of rows that each write changed. */
  readonly rowsOfWrites: number[];
  /** The number of events that were left for the transaction that deletes the repository. */
  leftEvents: number;
}

/** The store, with a record of how a repository is deleted. `beforeWrite` runs before each write. */
function recordDeletion(store: Store, deletion: Deletion, beforeWrite = async () => {}): Store {
  return {
    ...store,
    write: async (one, parameters) => {
      await beforeWrite();
      const rows = await store.write(one, parameters);
      deletion.rowsOfWrites.push(rows.length);
      return rows;
    },
    call: async (procedure, input) => {
      if (procedure.name === removeRepositoryOnce.name)
        deletion.leftEvents = (await store.read(countEventsSql))[0]?.count ?? 0;
      return await store.call(procedure, input);
    },
  };
}

const MANY = 3000;

forEachEngine('a repository with many events is deleted in many small transactions', async (store) => {
  const deletion = { rowsOfWrites: [], leftEvents: MANY };
  await using server = await startManagement(recordDeletion(store, deletion));
  const { body } = await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  await store.write(fillEventsSql, [body.id, MANY, 0]);
  await store.write(fillKeysSql, [body.id, MANY]);
  assert.equal((await server.call('DELETE', '/repos/grace/doors')).status, 204);
  assert.ok(deletion.leftEvents < SWEEP_BATCH, `${deletion.leftEvents} events in one transaction`);
  assert.ok(Math.max(...deletion.rowsOfWrites) <= SWEEP_BATCH);
  assert.ok(deletion.rowsOfWrites.length < MANY / 10, `${deletion.rowsOfWrites.length} transactions`);
  assert.deepEqual(await store.read(countEventsSql), [{ count: 0 }]);
});

forEachEngine('a repository is deleted although events come as fast as they are deleted', async (store) => {
  let repositoryId = 0;
  let added = 200;
  const keepPublishing = async () => {
    if (repositoryId === 0) return;
    await store.write(fillEventsSql, [repositoryId, 100, added]);
    added += 100;
  };
  const deletion = { rowsOfWrites: [], leftEvents: 0 };
  await using server = await startManagement(recordDeletion(store, deletion, keepPublishing));
  const { body } = await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  await store.write(fillEventsSql, [body.id, added, 0]);
  repositoryId = body.id;
  assert.equal((await server.call('DELETE', '/repos/grace/doors')).status, 204);
  assert.ok(added > 200);
  assert.deepEqual(await store.read(countEventsSql), [{ count: 0 }]);
});

withDoors('events of other repositories stay when one is deleted', async (server, store) => {
  const other = await server.call('POST', '/user/repos', { json: { name: 'windows' } });
  await store.write(fillEventsSql, [other.body.id, 5, 0]);
  const { id } = await server.management.access.find('grace', 'doors');
  await store.write(fillEventsSql, [id, 5, 5]);
  assert.equal((await server.call('DELETE', '/repos/grace/doors')).status, 204);
  assert.deepEqual(await store.read(countEventsSql), [{ count: 5 }]);
});
