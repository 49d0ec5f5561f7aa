import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { type ManagementServer, startManagement } from '../../../test/support/webhooks/webhook-management.ts';
import { type Store, statement } from '../../database/store.ts';
import { realWorld } from '../../world.ts';
import { EVENT_KINDS, FLAG_OF } from '../events/event-kind.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { PROFILE_NAMES } from '../hooks/hook.ts';

const EVENTS = '/repos/grace/doors/events';
const HOOKS = '/repos/grace/doors/hooks';
const ACTOR = { username: 'grace', name: 'Grace' };
const NOON_MS = Date.UTC(2026, 0, 1, 12);
const push = createSampleEvent('push', ACTOR, 'main', NOON_MS);

function withServer(title: string, run: (server: ManagementServer, store: Store) => Promise<void>): void {
  forEachEngine(title, async (store) => {
    await using server = await startManagement(store);
    await server.call('POST', '/user/repos', { json: { name: 'doors' } });
    await run(server, store);
  });
}

const countsSql = statement<{ events: number; deliveries: number }>(
  'test-count-events',
  'SELECT (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM deliveries) AS deliveries',
);

async function count(store: Store): Promise<[events: number, deliveries: number]> {
  const [row] = await store.read(countsSql);
  return [row?.events ?? 0, row?.deliveries ?? 0];
}

withServer(
  'an event makes one delivery for every hook that subscribes to its kind, each with its own body',
  async (server, store) => {
    for (const kind of EVENT_KINDS)
      await server.call('POST', HOOKS, {
        json: { url: `http://127.0.0.1:9001/${kind}`, push_events: false, [FLAG_OF[kind]]: true },
      });
    await server.call('POST', HOOKS, { json: { url: 'http://127.0.0.1:9001/github', profile: 'github' } });
    const answer = await server.call('POST', EVENTS, { json: push });
    assert.equal(answer.status, 202);
    assert.equal(answer.body.kind, 'push');
    assert.equal(answer.body.deliveries.length, 2);
    assert.equal(new Set(answer.body.deliveries.map((delivery: { uuid: string }) => delivery.uuid)).size, 2);
    assert.deepEqual(await count(store), [1, 2]);
    for (const kind of EVENT_KINDS.slice(1)) {
      const { status, body } = await server.call('POST', EVENTS, {
        json: createSampleEvent(kind, ACTOR, 'main', NOON_MS),
      });
      assert.equal(status, 202, JSON.stringify(body));
      assert.equal(body.deliveries.length, 1);
    }
    assert.deepEqual(await count(store), [5, 6]);
  },
);

withServer(
  'a repeated key answers as the first time and sends nothing; with another event it is refused',
  async (server, store) => {
    await server.call('POST', HOOKS, { json: { url: 'http://127.0.0.1:9001/' } });
    const headers = { 'idempotency-key': 'k-1' };
    const first = await server.call('POST', EVENTS, { json: push, headers });
    const second = await server.call('POST', EVENTS, { json: push, headers });
    assert.equal(second.status, 202);
    assert.deepEqual(second.body, first.body);
    assert.deepEqual(await count(store), [1, 1]);
    const other = await server.call('POST', EVENTS, { json: { ...push, ref: 'refs/heads/other' }, headers });
    assert.equal(other.status, 409);
    await server.call('POST', '/user/repos', { json: { name: 'windows' } });
    const elsewhere = await server.call('POST', '/repos/grace/windows/events', { json: push, headers });
    assert.equal(elsewhere.status, 202);
    assert.notEqual(elsewhere.body.id, first.body.id);
  },
);

withServer('of many publications under one key at once, one is made', async (server, store) => {
  await server.call('POST', HOOKS, { json: { url: 'http://127.0.0.1:9001/' } });
  const headers = { 'idempotency-key': 'k-2' };
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => server.call('POST', EVENTS, { json: push, headers })),
  );
  assert.deepEqual(new Set(answers.map((answer) => answer.status)), new Set([202]));
  assert.equal(new Set(answers.map((answer) => answer.body.id)).size, 1);
  assert.deepEqual(await count(store), [1, 1]);
});

const bodiesSql = statement<{ body: Uint8Array }>('test-event-bodies', 'SELECT body FROM delivery_contents');

withServer('a lone surrogate in an event is U+FFFD in the bodies of every profile', async (server, store) => {
  const flags = Object.fromEntries(Object.values(FLAG_OF).map((flag) => [flag, true]));
  for (const profile of PROFILE_NAMES)
    await server.call('POST', HOOKS, { json: { url: 'http://127.0.0.1:9001/', profile, ...flags } });
  const headers = { 'idempotency-key': 'half' };
  for (const kind of EVENT_KINDS) {
    const actor = { username: 'gr\ud83dce', name: 'Gr\udc00 \\ud800' };
    const event = createSampleEvent(kind, actor, 'main', NOON_MS);
    const { status, body } = await server.call('POST', EVENTS, { json: event });
    assert.equal(status, 202, `${kind}: ${JSON.stringify(body)}`);
  }
  const bodies = (await store.read(bodiesSql)).map(({ body }) => Buffer.from(body).toString());
  assert.equal(bodies.length, EVENT_KINDS.length * PROFILE_NAMES.length);
  for (const body of bodies) {
    assert.match(body, /gr\uFFFDce/);
    assert.doesNotMatch(body, /[^\\]\\ud/);
  }
  const event = { ...push, message: 'half \ud83d' };
  const first = await server.call('POST', EVENTS, { json: event, headers });
  const second = await server.call('POST', EVENTS, { json: event, headers });
  assert.deepEqual([second.status, second.body], [202, first.body]);
});

const LEVEL_65 = '['.repeat(65) + ']'.repeat(65);
const LEVEL_5000 = '['.repeat(5000) + ']'.repeat(5000);

withServer('an event that is nested too deeply is refused wherever it is published', async (server) => {
  const event = { ...createSampleEvent('issue', ACTOR, 'main', NOON_MS), changes: { a: { previous: 'here' } } };
  for (const [path, sent] of [
    [EVENTS, event],
    ['/api/admin/v1/repositories/grace/doors/events', { event }],
  ] as const)
    for (const nested of [LEVEL_65, LEVEL_5000]) {
      const body = JSON.stringify(sent).replace('"here"', nested);
      const answer = await server.call('POST', path, { body, headers: { 'content-type': 'application/json' } });
      assert.equal(answer.status, 400, path);
      assert.match(answer.body.detail ?? answer.body.message, /nested at most 64 levels/);
    }
});

forEachEngine('an event with a new key is stored in one round trip to the database', async (store) => {
  const procedures: string[] = [];
  const counting: Store = {
    ...store,
    call: (procedure, input) => {
      procedures.push(procedure.name);
      return store.call(procedure, input);
    },
  };
  await using server = await startManagement(counting);
  await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  await server.call('POST', HOOKS, { json: { url: 'http://127.0.0.1:9001/' } });
  const publish = (key: string) => server.call('POST', EVENTS, { json: push, headers: { 'idempotency-key': key } });
  procedures.length = 0;
  await Promise.all([publish('k-5'), publish('k-6')]);
  assert.deepEqual(procedures, []);
  await Promise.all([publish('k-6'), publish('k-7')]);
  assert.ok(procedures.some((name) => name === 'commitEvents'));
  assert.deepEqual(await count(store), [3, 3]);
});

forEachEngine('an event whose ids are taken gets others, and never a conflict', async (store) => {
  await using server = await startManagement(store);
  await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  await server.call('POST', HOOKS, { json: { url: 'http://127.0.0.1:9001/' } });
  const first = await server.call('POST', EVENTS, { json: push });
  const taken = [first.body.id, first.body.deliveries[0].id] as number[];
  const withTaken = (times: number): Store => {
    let left = times;
    const makeIds = async (wanted: number) => {
      left -= 1;
      return left >= 0 ? taken : await store.makeIds(wanted);
    };
    return { ...store, makeIds };
  };
  await using lucky = await startManagement(withTaken(2));
  const headers = { 'idempotency-key': 'k-4' };
  const second = await lucky.call('POST', EVENTS, { json: push, headers });
  assert.equal(second.status, 202);
  assert.notEqual(second.body.id, first.body.id);
  assert.deepEqual((await lucky.call('POST', EVENTS, { json: push, headers })).body, second.body);
  assert.deepEqual(await count(store), [2, 2]);
  await using unlucky = await startManagement(withTaken(Number.POSITIVE_INFINITY));
  const third = await unlucky.call('POST', EVENTS, { json: push });
  assert.equal(third.status, 503);
  assert.equal(third.headers.get('retry-after'), '1');
  assert.deepEqual(await count(store), [2, 2]);
});

forEachEngine('an event is stored once when the worker of the process fails to take it', async (store) => {
  const takeCommitted = () => {
    throw new Error('the worker fails');
  };
  await using server = await startManagement(store, realWorld, { takeCommitted });
  await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  await server.call('POST', HOOKS, { json: { url: 'http://127.0.0.1:9001/' } });
  const answers = await Promise.all([1, 2, 3].map(() => server.call('POST', EVENTS, { json: push })));
  assert.deepEqual(
    answers.map(({ status }) => status),
    [202, 202, 202],
  );
  assert.deepEqual(await count(store), [3, 3]);
});

forEachEngine('a key is forgotten after 24 hours', async (store) => {
  let nowMs = NOON_MS;
  await using server = await startManagement(store, { ...realWorld, nowMs: () => nowMs });
  await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  const headers = { 'idempotency-key': 'k-3' };
  const publish = async () => (await server.call('POST', EVENTS, { json: push, headers })).body.id;
  const first = await publish();
  nowMs += 24 * 3600_000 - 1;
  assert.equal(await publish(), first);
  nowMs += 1;
  assert.notEqual(await publish(), first);
});

withServer('an event that does not fit the schema is refused with its field', async (server, store) => {
  const cases: [json: unknown, message: RegExp][] = [
    [{}, /kind must not be blank/],
    [{ ...push, kind: 'party' }, /kind/],
    [{ ...push, ref: 'main' }, /ref must start with refs\/heads\//],
    [{ ...push, after: 'HEAD' }, /after must be 40 or 64/],
    [{ ...push, actor: undefined }, /actor must not be blank/],
  ];
  for (const [json, message] of cases) {
    const answer = await server.call('POST', EVENTS, { json });
    assert.equal(answer.status, 400);
    assert.match(answer.body.message, message);
  }
  assert.deepEqual(await count(store), [0, 0]);
});

withServer('a stranger publishes nothing', async (server, store) => {
  assert.equal((await server.call('POST', EVENTS, { json: push, token: '' })).status, 401);
  assert.equal((await server.call('POST', EVENTS, { json: push, token: 'linus' })).status, 403);
  assert.equal((await server.call('POST', EVENTS, { json: push, token: 'grace:all_user' })).status, 403);
  assert.deepEqual(await count(store), [0, 0]);
});

const readFixture = (path: string) =>
  JSON.parse(readFileSync(new URL(`../bridges/fixtures/${path}`, import.meta.url), 'utf8'));
const fixture = readFixture('github/push.json');

withServer('a webhook of another host is taken with the secret of its bridge, once', async (server, store) => {
  await server.call('POST', HOOKS, { json: { url: 'http://127.0.0.1:9001/' } });
  const bridge = await server.call('PUT', '/repos/grace/doors/bridges/github');
  assert.equal(bridge.status, 200);
  assert.match(bridge.body.url, /\/api\/v5\/repos\/grace\/doors\/events$/);
  const send = (body: string, secret: string, headers: object = {}) =>
    server.call('POST', EVENTS, {
      token: '',
      body,
      headers: {
        'content-type': 'application/json',
        ...fixture.headers,
        'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
        ...headers,
      },
    });
  const body = JSON.stringify(fixture.payload);
  const first = await send(body, bridge.body.secret);
  assert.equal(first.status, 202);
  assert.equal(first.body.deliveries.length, 1);
  assert.deepEqual((await send(body, bridge.body.secret)).body, first.body);
  assert.deepEqual(await count(store), [1, 1]);
  assert.equal((await send(body, 'another secret')).status, 401);
  const ping = await send('{"zen":"Calm"}', bridge.body.secret, { 'x-github-event': 'ping' });
  assert.equal(ping.status, 200);
  assert.equal(ping.body.ignored, true);
  const form = new URLSearchParams({ payload: body }).toString();
  const asForm = await send(form, bridge.body.secret, {
    'content-type': 'application/x-www-form-urlencoded',
    'x-github-delivery': 'another-one',
  });
  assert.equal(asForm.status, 202);
  const author = { name: 'n'.repeat(300), email: null };
  const odd = {
    ...fixture.payload,
    commits: [{ ...fixture.payload.commits[0], author, timestamp: '10000-01-01T00:00:00Z' }],
  };
  const shortened = await send(JSON.stringify(odd), bridge.body.secret, { 'x-github-delivery': 'an-odd-one' });
  assert.equal(shortened.status, 202, 'what git took is published');
  const refused = await server.call('POST', EVENTS, { json: { ...push, base_ref: 'b'.repeat(5000) } });
  assert.equal(refused.status, 400);
  assert.match(refused.body.error_message, /base_ref must be at most 4096 characters/);
});

const lastContentSql = statement<{ content: string }>(
  'test-last-content',
  'SELECT content FROM events ORDER BY id DESC LIMIT 1',
);

withServer('the time of a code host is that of its zone', async (server, store) => {
  const { payload } = readFixture('gitlab/push.json');
  const { body: bridge } = await server.call('PUT', '/repos/grace/doors/bridges/gitlab');
  for (const timestamp of ['2026-03-01 05:28:03-05', 'Sun, 01 Mar 2026 11:28:03 +0100 (CET)']) {
    const json = { ...payload, commits: [{ ...payload.commits[0], timestamp }] };
    const headers = { 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': bridge.secret };
    assert.equal((await server.call('POST', EVENTS, { token: '', json, headers })).status, 202);
    const [stored] = await store.read(lastContentSql);
    assert.equal(JSON.parse(stored?.content ?? '').commits[0].timestamp, '2026-03-01T10:28:03.000Z');
  }
});
