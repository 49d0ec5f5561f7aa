/** The secrets of bridges, and webhooks of code hosts that are signed with them. */
import assert from 'node:assert/strict';
import { withDoors } from '../../../test/support/webhooks/webhook-management.ts';
import { statement } from '../../database/store.ts';

const EVENTS = '/repos/grace/doors/events';

withDoors('an outage of the database does not look like a wrong secret to a code host', async (server, store) => {
  const { body } = await server.call('PUT', '/repos/grace/doors/bridges/gitlab');
  const headers = { 'x-gitlab-event': 'Unknown Hook', 'x-gitlab-token': body.secret };
  const send = () => server.call('POST', EVENTS, { token: '', json: { object_kind: 'unknown' }, headers });
  await store.write(statement('test-hide-repositories', 'ALTER TABLE repositories RENAME TO hidden_repositories'));
  assert.equal((await send()).status, 500);
  await store.write(statement('test-show-repositories', 'ALTER TABLE hidden_repositories RENAME TO repositories'));
  assert.equal((await send()).status, 200);
  await server.call('DELETE', '/repos/grace/doors');
  assert.equal((await send()).status, 401);
});

withDoors('the secret of a bridge is shown once, may be given, and goes with the bridge', async (server) => {
  const path = '/repos/grace/doors/bridges/gitlab';
  const given = await server.call('PUT', path, { json: { secret: 'a secret of my own' } });
  assert.equal(given.body.secret, 'a secret of my own');
  assert.equal((await server.call('PUT', path, { json: { secret: 'short' } })).status, 400);
  const misspelt = await server.call('PUT', path, { json: { secrets: 'another secret of my own' } });
  assert.equal(misspelt.status, 400, 'a random secret would replace the one that GitLab has');
  assert.match(misspelt.body.error_message, /"secrets" is no parameter here, allowed: secret$/);
  assert.equal((await server.call('DELETE', `${path}?dry_run=1`)).status, 400);
  const listed = await server.call('GET', '/repos/grace/doors/bridges');
  assert.equal(listed.body.length, 1);
  assert.equal(listed.body[0].secret, undefined);
  const webhook = {
    token: '',
    json: { object_kind: 'unknown' },
    headers: { 'x-gitlab-event': 'Unknown Hook', 'x-gitlab-token': 'a secret of my own' },
  };
  assert.equal((await server.call('POST', EVENTS, webhook)).status, 200);
  const named = { ...webhook, json: { object_kind: 'toString' } };
  assert.equal((await server.call('POST', EVENTS, named)).body.ignored, true);
  const german = 'der Schlüssel für uns';
  await server.call('PUT', path, { json: { secret: german } });
  const token = Buffer.from(german).toString('latin1');
  const fromGerman = { ...webhook, headers: { ...webhook.headers, 'x-gitlab-token': token } };
  assert.equal((await server.call('POST', EVENTS, fromGerman)).status, 200, 'GitLab sends the UTF-8 of its token');
  assert.equal((await server.call('POST', EVENTS, webhook)).status, 401);
  assert.equal((await server.call('DELETE', path)).status, 204);
  assert.equal((await server.call('DELETE', path)).status, 404);
  assert.equal((await server.call('POST', EVENTS, fromGerman)).status, 401);
  assert.equal((await server.call('PUT', '/repos/grace/doors/bridges/cvs')).status, 400);
  assert.equal((await server.call('PUT', path, { token: 'linus' })).status, 403);
});
