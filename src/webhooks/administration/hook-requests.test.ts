/** The bodies that the administration API takes for a webhook, over a real socket. */
import assert from 'node:assert/strict';
import { type CallOptions, HOOKS, withDoors } from '../../../test/support/webhooks/webhook-management.ts';
import { statement } from '../../database/store.ts';

const ALL_HOOKS = '/api/admin/v1/hooks';
const token = 'admin:admin';
const url = 'http://127.0.0.1:9001/hook';

const countSql = statement<{ count: number }>('test-audit-events', 'SELECT COUNT(*) AS count FROM audit_events');

withDoors(
  'a webhook that is sent back as it was read changes nothing, and nothing is recorded',
  async (server, store) => {
    const { body: hook } = await server.call('POST', HOOKS, { json: { url, password: 'sesame', encryption_type: 1 } });
    const path = `${ALL_HOOKS}/${hook.id}`;
    const { body: shown } = await server.call('GET', path, { token });
    const { body: listed } = await server.call('GET', ALL_HOOKS, { token });
    const before = await store.read(countSql);
    for (const json of [shown, listed.hooks[0]]) {
      assert.equal('id' in json && 'created_at' in json, true);
      const { status, body } = await server.call('PATCH', path, { token, json });
      assert.equal(status, 200, body.detail);
    }
    assert.deepEqual(await store.read(countSql), before);
    assert.deepEqual((await server.call('GET', path, { token })).body, shown);

    const changed = await server.call('PATCH', path, { token, json: { ...shown, id: hook.id + 1, note_events: true } });
    assert.deepEqual([changed.status, changed.body.id, changed.body.note_events], [200, hook.id, true]);
    const misspelt = await server.call('PATCH', path, { token, json: { ...shown, push_event: false } });
    assert.equal(misspelt.status, 400);
    assert.match(misspelt.body.detail, /"push_event" is no field here, allowed: .*push_events/);
  },
);

const JSON_TYPE = { 'content-type': 'application/json' };
const named = { repository: 'grace/doors', url };
const DEEP = `${'['.repeat(65)}${']'.repeat(65)}`;

const bodies: [title: string, options: CallOptions, status: number, detail: RegExp | undefined][] = [
  ['JSON', { json: named }, 200, undefined],
  [
    'JSON of a type of its own',
    { body: JSON.stringify(named), headers: { 'content-type': 'application/a+json; charset=utf-8' } },
    200,
    undefined,
  ],
  ['a form', { form: named }, 415, /Unsupported Media Type/],
  ['JSON without a type', { body: new TextEncoder().encode(JSON.stringify(named)) }, 415, /Unsupported Media Type/],
  ['no body', {}, 400, /repository /],
  ['an empty body', { body: '', headers: JSON_TYPE }, 400, /Malformed JSON in request body/],
  ['half a JSON', { body: '{"url":', headers: JSON_TYPE }, 400, /Malformed JSON in request body/],
  ['a list', { json: [named] }, 400, /json /],
  ['null', { json: null }, 400, /json /],
  ['nested JSON', { body: DEEP, headers: JSON_TYPE }, 400, /nested at most 64 levels/],
  ['a field of another type', { json: { ...named, url: 1 } }, 400, /url /],
];
withDoors('a body of the administration API is JSON, and is refused with the reason otherwise', async (server) => {
  for (const [title, options, status, detail = /./] of bodies) {
    const answer = await server.call('POST', ALL_HOOKS, { token, ...options });
    assert.equal(answer.status, status, `${title}: ${answer.body.detail}`);
    if (status !== 200) assert.match(answer.body.detail, detail, title);
  }
  const twice = await server.call('GET', `${ALL_HOOKS}?state=on&state=off`, { token });
  assert.match(twice.body.detail, /state /);
  const { body: hook } = await server.call('POST', ALL_HOOKS, { token, json: named });
  assert.equal((await server.call('POST', `${ALL_HOOKS}/${hook.id}/disable`, { token })).status, 200);
  assert.match(
    (await server.call('PATCH', `${ALL_HOOKS}/none`, { token, json: {} })).body.detail,
    /id must be a number/,
  );
});
