/** What reaches a repository that is deleted at that moment. */
import assert from 'node:assert/strict';
import { withDoors } from '../../../test/support/webhooks/webhook-management.ts';
import { statement } from '../../database/store.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { createHook } from '../management/manage-hook.ts';

const countEventsSql = statement<{ count: number }>('test-count-events', 'SELECT COUNT(*) AS count FROM events');
const event = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', Date.UTC(2026, 0, 1));

withDoors('a hook of a repository that is gone by now is refused as unknown, not as a conflict', async (server) => {
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
  'an event of a repository that is gone by now is refused and not stored, those beside it are',
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
