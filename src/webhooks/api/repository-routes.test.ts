import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { startManagement } from '../../../test/support/webhooks/webhook-management.ts';
import { statement } from '../../database/store.ts';
import { realWorld } from '../../world.ts';
import { createSampleEvent } from '../events/sample-event.ts';

forEachEngine('a repository is made, read and listed in the format of GitCode', async (store) => {
  await using server = await startManagement(store);
  const made = await server.call('POST', '/user/repos', {
    json: { name: 'Front Doors', description: 'They open', private: 'true', default_branch: 'trunk' },
  });
  assert.equal(made.status, 201);
  const { id, created_at, updated_at, ...rest } = made.body;
  assert.ok(Number.isInteger(id));
  assert.equal(created_at, updated_at);
  assert.deepEqual(rest, {
    full_name: 'grace/Front-Doors',
    human_name: 'grace/Front Doors',
    namespace: { path: 'grace', name: 'grace', type: 'personal' },
    owner: { id: 'id-grace', login: 'grace', type: 'User' },
    path: 'Front-Doors',
    name: 'Front Doors',
    description: 'They open',
    private: true,
    public: false,
    fork: false,
    url: `${server.url}/api/v5/repos/grace/Front-Doors`,
    html_url: `${server.url}/grace/Front-Doors`,
    web_url: `${server.url}/grace/Front-Doors`,
    http_url_to_repo: `${server.url}/grace/Front-Doors.git`,
    ssh_url_to_repo: 'git@127.0.0.1:grace/Front-Doors.git',
    hooks_url: `${server.url}/api/v5/repos/grace/Front-Doors/hooks`,
    default_branch: 'trunk',
  });
  const read = await server.call('GET', '/repos/GRACE/front-doors');
  assert.deepEqual(read.body, made.body);
  const list = await server.call('GET', '/user/repos');
  assert.deepEqual(list.body, [made.body]);
  assert.equal(list.headers.get('total_count'), '1');
});

forEachEngine('two repositories of one owner differ by more than case', async (store) => {
  await using server = await startManagement(store);
  assert.equal((await server.call('POST', '/user/repos', { json: { name: 'doors' } })).status, 201);
  assert.equal((await server.call('POST', '/user/repos', { json: { name: 'Doors' } })).status, 409);
  assert.equal((await server.call('POST', '/user/repos', { json: { name: 'doors' }, token: 'linus' })).status, 201);
});

forEachEngine('a path that could not be one is refused', async (store) => {
  await using server = await startManagement(store);
  for (const json of [{}, { name: 'a/b' }, { name: 'x', path: '..' }, { name: 'x', path: 'a.git' }, { name: '日本' }])
    assert.equal((await server.call('POST', '/user/repos', { json })).status, 400, JSON.stringify(json));
  assert.equal((await server.call('POST', '/user/repos', { json: { name: '日本', path: 'nihon' } })).status, 201);
});

forEachEngine('only an owner of an organization makes its repositories', async (store) => {
  await using server = await startManagement(store);
  const json = { name: 'doors' };
  const made = await server.call('POST', '/orgs/org-acme/repos', { json });
  assert.equal(made.status, 201);
  assert.equal(made.body.namespace.type, 'organization');
  assert.equal((await server.call('POST', '/orgs/org-acme/repos', { json, token: 'linus' })).status, 403);
  assert.equal((await server.call('POST', '/orgs/missing/repos', { json })).status, 404);
  assert.equal((await server.call('POST', '/orgs/linus/repos', { json })).status, 404);
});

forEachEngine('a private repository is not there for others, a public one cannot be deleted by them', async (store) => {
  await using server = await startManagement(store);
  await server.call('POST', '/user/repos', { json: { name: 'open' } });
  await server.call('POST', '/user/repos', { json: { name: 'closed', private: true } });
  assert.equal((await server.call('GET', '/repos/grace/open', { token: 'linus' })).status, 200);
  assert.equal((await server.call('GET', '/repos/grace/closed', { token: 'linus' })).status, 404);
  assert.equal((await server.call('DELETE', '/repos/grace/open', { token: 'linus' })).status, 403);
  assert.equal((await server.call('DELETE', '/repos/grace/closed', { token: 'linus' })).status, 404);
});

const leftoversSql = statement<{ hooks: number; events: number; keys: number; bridges: number; queued: number }>(
  'test-leftovers',
  `SELECT (SELECT count(*) FROM hooks) AS hooks, (SELECT count(*) FROM events) AS events,
     (SELECT count(*) FROM event_keys) AS keys, (SELECT count(*) FROM bridge_secrets) AS bridges,
     (SELECT count(*) FROM endpoint_queue WHERE canceled_at_ms IS NULL) AS queued`,
);

forEachEngine(
  'a deleted repository takes its hooks, events and bridges along, and its deliveries are canceled',
  async (store) => {
    await using server = await startManagement(store);
    await server.call('POST', '/user/repos', { json: { name: 'doors' } });
    await server.call('POST', '/repos/grace/doors/hooks', { json: { url: 'http://127.0.0.1:9001/' } });
    await server.call('PUT', '/repos/grace/doors/bridges/gitea');
    const event = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', Date.UTC(2026, 0, 1));
    await server.call('POST', '/repos/grace/doors/events', { json: event, headers: { 'idempotency-key': 'k' } });
    const before = (await store.read(leftoversSql))[0];
    assert.deepEqual(before && { ...before }, { hooks: 1, events: 1, keys: 1, bridges: 1, queued: 1 });
    assert.equal((await server.call('DELETE', '/repos/grace/doors')).status, 204);
    const after = (await store.read(leftoversSql))[0];
    assert.deepEqual(after && { ...after }, { hooks: 0, events: 0, keys: 0, bridges: 0, queued: 0 });
    assert.equal((await server.call('GET', '/repos/grace/doors')).status, 404);
  },
);

forEachEngine(
  'an owner has as many repositories as the setting allows, also when many are made at once',
  async (store) => {
    await using server = await startManagement(store, realWorld, { repositoriesPerOwner: 3 });
    const create = (name: string, path = '/user/repos') => server.call('POST', path, { json: { name } });
    const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => create(`r${index}`)));
    const statuses = answers.map(({ status }) => status).sort((a, b) => a - b);
    assert.deepEqual(statuses, [...Array(3).fill(201), ...Array(5).fill(409)]);
    const refused = answers.find(({ status }) => status === 409);
    assert.match(refused?.body.error_message, /"grace" has 3, the most that an owner may have; delete one first/);
    assert.equal((await server.call('GET', '/user/repos')).headers.get('total_count'), '3');
    assert.equal((await create('sea', '/orgs/org-sea/repos')).status, 201, 'an organization has its own');
    const made = answers.find(({ status }) => status === 201);
    assert.equal((await server.call('DELETE', `/repos/${made?.body.full_name}`)).status, 204);
    assert.equal((await create('next')).status, 201);
  },
);
