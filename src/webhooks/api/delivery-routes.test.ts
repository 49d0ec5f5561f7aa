import assert from 'node:assert/strict';
import { waitForDelivery } from '../../../test/support/webhooks/deliveries-store.ts';
import {
  addPast,
  checkRefusal,
  HOOKS,
  HOUR_MS,
  NOON,
  SECRET,
  setUrlSql,
  withHook,
} from '../../../test/support/webhooks/hook-log.ts';
import { statement } from '../../database/store.ts';
import { realWorld } from '../../world.ts';

const setWaitingSql = statement(
  'test-set-waiting',
  'UPDATE deliveries SET lane = 1, due_at_ms = $2, attempts = $3, schedule_from = $4 WHERE id = $1',
);
const waitingSql = statement<
  Record<'id' | 'lane' | 'schedule_from' | 'due_at_ms', number> & { readonly state: string }
>(
  'test-list-waiting',
  'SELECT id, state, lane, schedule_from, due_at_ms FROM deliveries WHERE hook_id = $1 ORDER BY id',
);

withHook('a delivery shows what was sent and answered, with times, and no secret', async (scene) => {
  const { server, receiver, hookId, log } = scene;
  assert.equal((await server.call('POST', `${HOOKS}/${hookId}/tests`)).status, 204);
  const { body: page } = await server.call('GET', log);
  const { status, body } = await server.call('GET', `${log}/${page[0].id}`);
  assert.equal(status, 200);
  const { attempt_log, request_body, ...summary } = body;
  assert.deepEqual(summary, page[0]);
  assert.deepEqual([summary.state, summary.attempts, summary.status_code], ['succeeded', 1, 200]);
  const [sent] = receiver.received;
  assert.equal(request_body, sent?.body.toString());
  assert.equal(sent?.headers['x-gitcode-delivery'], summary.uuid);
  const [attempt] = attempt_log;
  assert.equal(attempt_log.length, 1);
  assert.deepEqual([attempt.attempt, attempt.outcome, attempt.response_body], [1, 'accepted', 'ok']);
  assert.equal(attempt.remote_address, '127.0.0.1');
  assert.equal(attempt.request_headers['X-GitCode-Event'], 'Push Hook');
  assert.equal(attempt.request_headers['X-GitCode-Signature-256'], '[redacted]');
  assert.equal(attempt.request_headers['webhook-signature'], '[redacted]');
  assert.deepEqual(Object.keys(attempt.timings_ms).sort(), ['connect', 'dns', 'firstByte', 'tls', 'total']);
  assert.equal(typeof attempt.timings_ms.connect, 'number');
  const text = JSON.stringify(body);
  for (const secret of [SECRET, String(sent?.headers['x-gitcode-signature-256'])]) assert.ok(!text.includes(secret));
});

withHook('a redelivery is sent at once, with the same bytes under the same id', async (scene) => {
  const { server, receiver, store, hookId, log } = scene;
  const id = await addPast(scene, { state: 'dead' });
  const answer = await server.call('POST', `${log}/${id}/redeliver`);
  assert.equal(answer.status, 202);
  assert.deepEqual([answer.body.id, answer.body.hook_id], [id, hookId]);
  assert.equal((await waitForDelivery(store, id)).state, 'succeeded');
  await server.call('POST', `${log}/${id}/redeliver`);
  await receiver.waitFor(2);
  const [first, second] = receiver.received;
  assert.deepEqual(second?.body, first?.body);
  assert.equal(first?.headers['x-gitcode-delivery'], answer.body.uuid);
  assert.equal(second?.headers['x-gitcode-delivery'], answer.body.uuid);
});

withHook('a test that fails is recorded, not retried, and not replayed', async (scene) => {
  const { server, store, hookId, log, url } = scene;
  await store.write(setUrlSql, [hookId, url.replace(/:\d+\//, ':1026/')]);
  assert.equal((await server.call('POST', `${HOOKS}/${hookId}/tests`)).status, 204);
  const { body: page } = await server.call('GET', log);
  assert.deepEqual([page[0].state, page[0].attempts, page[0].next_attempt_at], ['dead', 1, null]);
  const { body: hook } = await server.call('GET', `${HOOKS}/${hookId}`);
  assert.deepEqual([hook.result_code, hook.result], [0, 'connection refused']);
  const answer = await server.call('POST', `${HOOKS}/${hookId}/replay?since=2026-01-01T00:00:00Z`);
  assert.deepEqual(answer.body, { replayed: 0 });
});

withHook('an answer that was cut within a character ends before it', async (scene) => {
  const { server, log, answerWith } = scene;
  answerWith('漢'.repeat(5000));
  await server.call('POST', `${HOOKS}/${scene.hookId}/tests`);
  const { body: page } = await server.call('GET', log);
  const { body } = await server.call('GET', `${log}/${page[0].id}`);
  assert.equal(body.attempt_log[0].response_body, '漢'.repeat(2730));
});

withHook('a redelivery to an address that is not allowed is refused and sends nothing', async (scene) => {
  const { server, store, hookId, log } = scene;
  const id = await addPast(scene, { state: 'dead' });
  await store.write(setUrlSql, [hookId, 'http://10.0.0.1/']);
  for (const path of [`${log}/${id}/redeliver`, `${HOOKS}/${hookId}/replay?since=2026-01-01T00:00:00Z`])
    checkRefusal(await server.call('POST', path), 400, 'BAD_REQUEST');
  const { body } = await server.call('GET', `${log}/${id}`);
  assert.deepEqual([body.state, body.attempt_log], ['dead', []]);
});

withHook('what waits for a retry becomes due at once when asked, and nothing else changes', async (scene) => {
  const { server, store, hookId } = scene;
  const farMs = realWorld.nowMs() + HOUR_MS;
  const retrying = await addPast(scene, { state: 'pending' });
  const reserved = await addPast(scene, { state: 'pending' });
  // Perhaps it is being sent: made due again, it would be sent twice.
  const due = await addPast(scene, { state: 'pending' });
  const dead = await addPast(scene, { state: 'dead' });
  await store.write(setWaitingSql, [retrying, farMs, 3, 0]);
  await store.write(setWaitingSql, [reserved, farMs, 3, 3]);
  await store.write(setWaitingSql, [due, 1, 3, 0]);
  const answer = await server.call('POST', `${HOOKS}/${hookId}/send-waiting`);
  assert.deepEqual([answer.status, answer.body], [202, { waiting: 3 }]);
  const rows = await store.read(waitingSql, [hookId]);
  assert.deepEqual(
    rows.map(({ id, state, lane, schedule_from, due_at_ms }) => [id, state, lane, schedule_from, due_at_ms < farMs]),
    [
      [retrying, 'pending', 0, 3, true],
      [reserved, 'pending', 1, 3, false],
      [due, 'pending', 1, 0, true],
      [dead, 'dead', 0, 0, true],
    ],
  );
  await server.call('PATCH', `${HOOKS}/${hookId}`, { json: { url: scene.url, active: false } });
  checkRefusal(await server.call('POST', `${HOOKS}/${hookId}/send-waiting`), 409, 'CONFLICT');
});

withHook('a replay sends again what failed for good since then', async (scene) => {
  const { server, store, hookId } = scene;
  const early = await addPast(scene, { state: 'dead', hour: 0 });
  const states = ['dead', 'blocked', 'expired', 'succeeded', 'canceled'];
  const ids: number[] = [];
  for (const state of states) ids.push(await addPast(scene, { state, hour: 1 }));
  const since = new Date(NOON + HOUR_MS).toISOString();
  const answer = await server.call('POST', `${HOOKS}/${hookId}/replay`, { json: { since } });
  assert.deepEqual([answer.status, answer.body], [202, { replayed: 3 }]);
  const after = await Promise.all(ids.map(async (id) => (await waitForDelivery(store, id, () => true)).state));
  assert.deepEqual(after, ['pending', 'pending', 'pending', 'succeeded', 'canceled']);
  assert.equal((await waitForDelivery(store, early, () => true)).state, 'dead');
  const replayWith = (json: object) => server.call('POST', `${HOOKS}/${hookId}/replay`, { json });
  checkRefusal(await replayWith({}), 400, 'PARAMETER_ERROR');
  checkRefusal(await replayWith({ since: 'monday' }), 400, 'BAD_REQUEST');
});

withHook('a delivery is found by its own hook only, by a whole number', async (scene) => {
  const { server, log, url } = scene;
  const id = await addPast(scene);
  const { body: other } = await server.call('POST', HOOKS, { json: { url: `${url}/other` } });
  const elsewhere = `${HOOKS}/${other.id}/deliveries/${id}`;
  for (const path of [`${log}/${id + 1}`, elsewhere]) {
    const unknown = await server.call('GET', path);
    checkRefusal(unknown, 404, 'NOT_EXIST');
    assert.equal(unknown.body.error_code, 1003);
    checkRefusal(await server.call('POST', `${path}/redeliver`), 404, 'NOT_EXIST');
  }
  checkRefusal(await server.call('GET', `${log}/last`), 400, 'BAD_REQUEST');
  assert.equal((await server.call('GET', `${HOOKS}/99999/deliveries`)).status, 404);
});

withHook('the log is for those who may administer the repository, with a token for it', async (scene) => {
  const { server, receiver, hookId, log } = scene;
  const id = await addPast(scene, { state: 'dead' });
  const requests: [method: string, path: string][] = [
    ['GET', log],
    ['GET', `${log}/${id}`],
    ['POST', `${log}/${id}/redeliver`],
    ['POST', `${HOOKS}/${hookId}/replay?since=2026-01-01T00:00:00Z`],
    ['POST', `${HOOKS}/${hookId}/send-waiting`],
  ];
  for (const [method, path] of requests) {
    assert.equal((await server.call(method, path, { token: '' })).status, 401);
    assert.equal((await server.call(method, path, { token: 'grace:all_projects' })).status, 403);
    assert.equal((await server.call(method, path, { token: 'linus' })).status, 403);
  }
  assert.equal(receiver.received.length, 0);
});
