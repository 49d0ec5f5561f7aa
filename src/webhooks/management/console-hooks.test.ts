import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { type ManagementServer, startManagement } from '../../../test/support/webhooks/webhook-management.ts';
import { type Store, statement } from '../../database/store.ts';
import { isFailure } from '../../errors.ts';
import { enqueueStatements } from '../delivery/queue/delivery-store.ts';

const URL_1 = 'http://127.0.0.1:9001/hook';
const HOUR_MS = 3_600_000;
const grace = { userId: 'id-grace', login: 'grace', isAdmin: false };
const linus = { userId: 'id-linus', login: 'linus', isAdmin: false };

const setOutcomeSql = statement('test-set-outcome', 'UPDATE deliveries SET state = $2, attempts = $3 WHERE id = $1');
const setFailingSql = statement(
  'test-set-failing',
  'UPDATE endpoint_queue SET fails = 3, failing_since_ms = $2 WHERE hook_id = $1',
);

async function refusalOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => assert.fail('it was not refused'),
    (reason: unknown) => reason,
  );
  assert.ok(isFailure(error), String(error));
  return error.code;
}

async function enqueue(store: Store, { world }: ManagementServer['management'], hookId: number): Promise<number> {
  const [id = 0] = await store.makeIds(1);
  const base = { id, hookId, eventId: 1, uuid: world.uuid(), body: Buffer.from('{}'), eventKind: 'push' as const };
  await store.writeAll(enqueueStatements([{ ...base, origin: 'http://a', ownerId: 'id-grace', nowMs: world.nowMs() }]));
  return id;
}

forEachEngine(
  'a stranger opens neither an owner nor a repository, be it public, private or not there',
  async (store) => {
    await using server = await startManagement(store);
    for (const name of ['open', 'closed'])
      await server.admin.createRepository(grace, 'grace', { name, private: name === 'closed' });
    assert.equal((await server.admin.openRepository(grace, 'grace', 'open')).repository.full_name, 'grace/open');
    for (const name of ['open', 'closed', 'none'])
      assert.equal(await refusalOf(server.admin.openRepository(linus, 'grace', name)), 'not_found', name);
    for (const owner of ['grace', 'org-sea', 'missing'])
      assert.equal(await refusalOf(server.admin.openOwner(linus, owner, 1)), 'not_found', owner);
    assert.equal(await refusalOf(server.admin.createRepository(linus, 'grace', { name: 'mine' })), 'not_found');
  },
);

forEachEngine(
  'a person sees their own repositories and those of their organizations, with the state of their hooks',
  async (store) => {
    await using server = await startManagement(store);
    const { admin } = server;
    await admin.createRepository(grace, 'org-sea', { name: 'harbour' });
    await admin.createRepository(grace, 'grace', { name: 'doors' });
    await admin.createRepository(linus, 'linus', { name: 'kernel' });
    const doors = await admin.openRepository(grace, 'grace', 'doors');
    const [failing, disabled] = [await doors.createHook({ url: URL_1 }), await doors.createHook({ url: URL_1 })];
    for (const hook of [failing, disabled]) await enqueue(store, server.management, hook.id);
    for (const hook of [failing, disabled]) await store.write(setFailingSql, [hook.id, 5]);
    await (await doors.openHook(String(disabled.id))).switch(false);
    const listed = (await admin.listOwners(grace)).map(({ login, total, repositories }) => ({
      login,
      total,
      repositories: repositories.map(({ path, counts }) => ({ path, ...counts })),
    }));
    assert.deepEqual(listed, [
      {
        login: 'grace',
        total: 1,
        repositories: [{ path: 'doors', hooks: 2, disabled: 0, switchedOff: 1, failing: 1 }],
      },
      {
        login: 'org-sea',
        total: 1,
        repositories: [{ path: 'harbour', hooks: 0, disabled: 0, switchedOff: 0, failing: 0 }],
      },
    ]);
    const [first, second] = await doors.listHooks();
    assert.deepEqual(first?.hookQueue, { fails: 3, failingSinceMs: 5, heldSinceMs: null, waiting: 1 });
    assert.deepEqual([second?.hookQueue.waiting, typeof second?.hookQueue.heldSinceMs], [1, 'number']);
  },
);

forEachEngine(
  'the chart of a hook counts the deliveries of each of the last 24 hours by their outcome',
  async (store) => {
    const world = createStillWorld();
    await using server = await startManagement(store, world);
    const repository = await server.admin.createRepository(grace, 'grace', { name: 'doors' });
    const doors = await server.admin.openRepository(grace, 'grace', repository.path);
    const { id } = await doors.createHook({ url: URL_1 });
    await enqueue(store, server.management, id);
    world.moveMs(10 * HOUR_MS);
    for (const [state, attempts] of [
      ['succeeded', 1],
      ['dead', 10],
      ['pending', 2],
      ['pending', 0],
    ] as const)
      await store.write(setOutcomeSql, [await enqueue(store, server.management, id), state, attempts]);
    world.moveMs(14.5 * HOUR_MS);
    const { lastDay, isChartCut } = await (await doors.openHook(String(id))).describe();
    assert.equal(lastDay.length, 24);
    assert.deepEqual(
      lastDay.flatMap(({ succeeded, failed, waiting }, hour) =>
        succeeded + failed + waiting === 0 ? [] : [[hour, succeeded, failed, waiting]],
      ),
      [[9, 1, 2, 1]],
    );
    assert.equal(isChartCut, false);
  },
);

forEachEngine('a key is replaced with a given or a random one, and the former one signs for a day', async (store) => {
  await using server = await startManagement(store);
  await server.admin.createRepository(grace, 'grace', { name: 'doors' });
  const doors = await server.admin.openRepository(grace, 'grace', 'doors');
  const { id } = await doors.createHook({ url: URL_1, password: 'first', encryption_type: '1' });
  const open = () => doors.openHook(String(id));
  assert.equal((await (await open()).describe()).formerKeyUntilMs, null);
  await (await open()).rotateKey('second');
  const changed = await (await open()).describe();
  assert.deepEqual(
    [changed.password, changed.encryption_type, typeof changed.formerKeyUntilMs],
    ['second', 1, 'number'],
  );
  await (await open()).rotateKey('');
  assert.match((await (await open()).describe()).password, /^[\w-]{43}$/);
});
