import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { checkRefusal, HOOKS, startManagement, withDoors } from '../../../test/support/webhooks/webhook-management.ts';
import { statement } from '../../database/store.ts';
import { realWorld } from '../../world.ts';

const URL_1 = 'http://127.0.0.1:9001/hook';

withDoors('a fresh hook has the fields and defaults of GitCode', async (server) => {
  const created = await server.call('POST', HOOKS, { json: { url: URL_1, password: 'pw' } });
  assert.equal(created.status, 201);
  const { id, created_at, project_id, ...rest } = created.body;
  assert.ok(Number.isInteger(id) && id < 2 ** 31);
  assert.ok(Number.isInteger(project_id) && project_id < 2 ** 31);
  assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/);
  assert.deepEqual(rest, {
    url: URL_1,
    password: 'pw',
    result: null,
    result_code: 0,
    push_events: true,
    tag_push_events: false,
    issues_events: false,
    note_events: false,
    merge_requests_events: false,
    encryption_type: 0,
    profile: 'gitcode',
    active: true,
    disabled_at: null,
    disabled_reason: null,
    paused_since: null,
    paused_until: null,
    paused_reason: null,
  });
  const read = await server.call('GET', `${HOOKS}/${id}`);
  assert.equal(read.status, 200);
  assert.deepEqual(read.body, created.body);
});

withDoors('parameters are taken alike from the query, a form and JSON', async (server) => {
  const values = { url: URL_1, encryption_type: '1', password: 'k', push_events: 'false', note_events: '1' };
  const answers = [
    await server.call('POST', HOOKS, { form: values }),
    await server.call('POST', `${HOOKS}?${new URLSearchParams(values).toString()}`),
    await server.call('POST', HOOKS, {
      json: { url: URL_1, encryption_type: 1, password: 'k', push_events: false, note_events: true },
    }),
    await server.call('POST', HOOKS, { json: { ...values, push_events: 0, id: 99, result: 'no', unknown: {} } }),
  ];
  for (const { status, body } of answers) {
    assert.equal(status, 201);
    assert.equal(body.encryption_type, 1);
    assert.equal(body.push_events, false);
    assert.equal(body.note_events, true);
    assert.equal(body.issues_events, false);
    assert.equal(body.result, null);
    assert.notEqual(body.id, 99);
  }
});

withDoors('JSON is taken from clients that call it a form, or nothing, or write its type otherwise', async (server) => {
  const body = JSON.stringify({ url: URL_1, push_events: false });
  for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'Application/JSON; charset=UTF-8']) {
    const created = await server.call('POST', HOOKS, { body, headers: { 'content-type': type } });
    assert.deepEqual([created.status, created.body.push_events], [201, false], type);
  }
});

withDoors('a body that is not what its type says is refused, and is no failure of ours', async (server) => {
  const cases: [type: string, body: string][] = [
    ['multipart/form-data', 'url=x'],
    ['multipart/form-data; boundary=b', 'url=x'],
    ['application/json', 'url=x'],
    ['application/json', '[1]'],
    ['application/x-www-form-urlencoded', '{'],
  ];
  for (const [type, body] of cases) {
    const refused = await server.call('POST', HOOKS, { body, headers: { 'content-type': type } });
    checkRefusal(refused, 400, 'BAD_REQUEST');
    assert.match(refused.body.message, /^Request body parsing error/);
  }
});

withDoors('refusals name the parameter and what it must be', async (server) => {
  const cases: [given: object, message: string][] = [
    [{ url: 5 }, 'url must be text, got 5'],
    [{ url: URL_1, push_events: 'yes' }, 'push_events must be true or false, got "yes"'],
    [{ url: URL_1, push_events: [true] }, 'push_events must be true or false, got [true]'],
    [{ url: URL_1, encryption_type: 2 }, 'encryption_type must be a whole number from 0 to 1, got 2'],
    [{ url: URL_1, profile: 'svn' }, 'profile must be one of gitcode, gitee, github, gitlab, got "svn"'],
    [{ url: URL_1, password: 12345 }, 'password must be text'],
    [{ url: URL_1, password: 'pw ' }, 'password must not begin or end with a blank: it travels in a header'],
    [{ url: URL_1, password: '\ud800' }, 'password must not hold control characters or lone surrogates'],
  ];
  for (const [json, message] of cases) {
    const refused = await server.call('POST', HOOKS, { json });
    checkRefusal(refused, 400, 'BAD_REQUEST');
    assert.equal(refused.body.message, `Cannot create the webhook: ${message}`);
  }
});

withDoors('a deleted hook is gone, and both deletions answer as they should', async (server) => {
  const { body: hook } = await server.call('POST', HOOKS, { json: { url: URL_1 } });
  const deleted = await server.call('DELETE', `${HOOKS}/${hook.id}`);
  assert.equal(deleted.status, 204);
  assert.equal(deleted.body, undefined);
  checkRefusal(await server.call('DELETE', `${HOOKS}/${hook.id}`), 404, 'NOT_EXIST');
  checkRefusal(await server.call('GET', `${HOOKS}/${hook.id}`), 404, 'NOT_EXIST');
});

withDoors('a listing tells pages and totals, in the headers of GitCode and as links', async (server) => {
  for (let index = 0; index < 5; index++) await server.call('POST', HOOKS, { json: { url: `${URL_1}/${index}` } });
  const page = await server.call('GET', `${HOOKS}?per_page=2&page=2`);
  assert.equal(page.status, 200);
  assert.deepEqual(
    page.body.map((hook: { url: string }) => hook.url),
    [`${URL_1}/2`, `${URL_1}/3`],
  );
  assert.equal(page.headers.get('total_count'), '5');
  assert.equal(page.headers.get('total_page'), '3');
  const links = page.headers.get('link') ?? '';
  assert.match(links, /per_page=2&page=1>; rel="first"/);
  assert.match(links, /per_page=2&page=3>; rel="next"/);
  assert.match(links, /per_page=2&page=3>; rel="last"/);
  const withToken = await server.call('GET', `${HOOKS}?access_token=grace`, { token: '' });
  assert.equal(withToken.body.length, 5);
  assert.doesNotMatch(withToken.headers.get('link') ?? '', /access_token/);
  for (const query of ['per_page=101', 'per_page=0', 'page=0', 'page=two'])
    checkRefusal(await server.call('GET', `${HOOKS}?${query}`), 400, 'BAD_REQUEST');
});

withDoors('bad input is refused with a name, a field and a trace id', async (server) => {
  const cases: [title: string, json: unknown, name: string, message: RegExp][] = [
    ['no url', {}, 'PARAMETER_ERROR', /url must not be blank/],
    ['a blank url', { url: '' }, 'PARAMETER_ERROR', /url must not be blank/],
    ['a long url', { url: `http://example.com/${'x'.repeat(2048)}` }, 'BAD_REQUEST', /at most 2048/],
    ['a private address', { url: 'http://10.0.0.1/' }, 'BAD_REQUEST', /url/],
    ['another scheme', { url: 'ftp://example.com/' }, 'BAD_REQUEST', /url/],
    ['an unknown encryption', { url: URL_1, encryption_type: 2 }, 'BAD_REQUEST', /encryption_type must be/],
    ['a malformed flag', { url: URL_1, push_events: 'maybe' }, 'BAD_REQUEST', /push_events must be true or false/],
    ['a long password', { url: URL_1, password: 'x'.repeat(256) }, 'BAD_REQUEST', /at most 255/],
    ['a password that would end its header', { url: URL_1, password: 'a\r\nb' }, 'BAD_REQUEST', /control characters/],
    ['an unknown profile', { url: URL_1, profile: 'svn' }, 'BAD_REQUEST', /profile must be one of/],
  ];
  for (const [title, json, name, message] of cases) {
    const answer = await server.call('POST', HOOKS, { json });
    checkRefusal(answer, 400, name);
    assert.match(answer.body.message, message, title);
    assert.doesNotMatch(answer.body.message, /a\\r\\nb|x{200}/);
  }
  const broken = await server.call('POST', HOOKS, { body: '{"url":', headers: { 'content-type': 'application/json' } });
  checkRefusal(broken, 400, 'BAD_REQUEST');
  for (const method of ['GET', 'PATCH', 'DELETE'])
    checkRefusal(await server.call(method, `${HOOKS}/abc`), 400, 'BAD_REQUEST');
  checkRefusal(await server.call('POST', `${HOOKS}/abc/tests`), 400, 'BAD_REQUEST');
});

withDoors('only who administers the repository manages its hooks', async (server) => {
  const { body: hook } = await server.call('POST', HOOKS, { json: { url: URL_1, password: 'secret word' } });
  await server.call('POST', '/user/repos', { json: { name: 'cellar', private: true } });
  for (const path of [HOOKS, `${HOOKS}/${hook.id}`]) {
    const refused = await server.call('GET', path, { token: 'linus' });
    checkRefusal(refused, 403, 'FORBIDDEN');
    assert.doesNotMatch(JSON.stringify(refused.body), /secret word/);
  }
  checkRefusal(await server.call('GET', '/repos/grace/cellar/hooks', { token: 'linus' }), 404, 'UN_KNOW');
  checkRefusal(await server.call('GET', '/repos/grace/nothing/hooks'), 404, 'UN_KNOW');
  checkRefusal(await server.call('GET', HOOKS, { token: '' }), 401, 'UNAUTHORIZED');
  checkRefusal(await server.call('GET', HOOKS, { token: 'grace:all_user' }), 403, 'FORBIDDEN');
  assert.equal((await server.call('GET', HOOKS, { token: 'admin' })).status, 200);
});

withDoors('a hook is not reached through another repository', async (server) => {
  const { body: hook } = await server.call('POST', HOOKS, { json: { url: URL_1 } });
  await server.call('POST', '/user/repos', { json: { name: 'other' }, token: 'linus' });
  const path = `/repos/linus/other/hooks/${hook.id}`;
  for (const [method, target] of [
    ['GET', path],
    ['DELETE', path],
    ['POST', `${path}/tests`],
  ] as const)
    checkRefusal(await server.call(method, target, { token: 'linus' }), 404, 'NOT_EXIST');
  checkRefusal(await server.call('PATCH', path, { token: 'linus', json: { url: URL_1 } }), 404, 'NOT_EXIST');
});

withDoors('a repository takes 50 hooks and no more, also when many come at once', async (server) => {
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, index) => server.call('POST', HOOKS, { json: { url: `${URL_1}/${index}` } })),
  );
  const statuses = answers.map((answer) => answer.status).sort((a, b) => a - b);
  assert.deepEqual(statuses, [...Array(50).fill(201), ...Array(10).fill(409)]);
  const { headers } = await server.call('GET', HOOKS);
  assert.equal(headers.get('total_count'), '50');
});

const deliveryOfTestSql = statement<{ event_kind: string; body: Uint8Array; source: string }>(
  'test-delivery-of-test',
  `SELECT d.event_kind, c.body, e.source FROM deliveries d
   JOIN delivery_contents c ON c.delivery_id = d.id JOIN events e ON e.id = c.event_id WHERE d.id = $1`,
);

withDoors('a test is an ordinary delivery of this hook, attempted at once', async (server, store) => {
  const { body: hook } = await server.call('POST', HOOKS, {
    json: { url: URL_1, note_events: true },
  });
  await server.call('POST', HOOKS, { json: { url: `${URL_1}/bystander` } });
  const tested = await server.call('POST', `${HOOKS}/${hook.id}/tests`);
  assert.equal(tested.status, 204);
  assert.equal(tested.body, undefined);
  assert.equal(server.attempts.length, 1);
  const [delivery] = await store.read(deliveryOfTestSql, [server.attempts[0]!]);
  assert.equal(delivery?.event_kind, 'push');
  assert.equal(delivery?.source, 'test');
  const body = JSON.parse(Buffer.from(delivery?.body ?? []).toString());
  assert.equal(body.project.path_with_namespace, 'grace/doors');
  assert.equal(body.hook_id, hook.id);
});

forEachEngine('a user has 60 tests an hour', async (store) => {
  let nowMs = Date.UTC(2026, 0, 1, 12, 15);
  await using server = await startManagement(store, { ...realWorld, nowMs: () => nowMs });
  await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  const { body: hook } = await server.call('POST', HOOKS, { json: { url: URL_1 } });
  for (let index = 0; index < 60; index++)
    assert.equal((await server.call('POST', `${HOOKS}/${hook.id}/tests`)).status, 204);
  const refused = await server.call('POST', `${HOOKS}/${hook.id}/tests`);
  checkRefusal(refused, 429, 'TOO_MANY_REQUESTS');
  assert.equal(refused.headers.get('retry-after'), String(45 * 60));
  nowMs += 45 * 60_000;
  assert.equal((await server.call('POST', `${HOOKS}/${hook.id}/tests`)).status, 204);
});
