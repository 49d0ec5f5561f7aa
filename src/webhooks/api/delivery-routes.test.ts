import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { enqueueTestDelivery, waitForDelivery } from '../../../test/support/deliveries-store.ts';
import { forEachEngine } from '../../../test/support/engines.ts';
import { type Receiver, startReceiver } from '../../../test/support/receiver.ts';
import { type Answer, type ManagementServer, startManagement } from '../../../test/support/webhook-management.ts';
import { type Store, statement } from '../../database/store.ts';
import { createSecretCipher } from '../../encryption/secret-cipher.ts';
import { createLog } from '../../telemetry/log.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { realWorld } from '../../world.ts';
import { createAddressGuard } from '../addresses/address-guard.ts';
import { createDeliveryWorker } from '../delivery/worker/delivery-worker.ts';
import { createSampleEvent } from '../events/sample-event.ts';

const HOOKS = '/repos/grace/doors/hooks';
const SECRET = 'a key of the test';
const HOUR_MS = 3_600_000;
const NOON = Date.UTC(2026, 5, 1, 12);
const ACTOR = { username: 'grace', name: 'Grace' };

const setStateSql = statement('test-set-state', 'UPDATE deliveries SET state = $2, event_kind = $3 WHERE id = $1');
const setUrlSql = statement('test-set-url', 'UPDATE hooks SET url = $2 WHERE id = $1');
const setStatusSql = statement('test-set-status', 'UPDATE deliveries SET status = $2 WHERE id = $1');
const holdSql = statement('test-hold', 'UPDATE endpoint_queue SET held_since_ms = 1 WHERE hook_id = $1');

interface Scene {
  readonly server: ManagementServer;
  readonly receiver: Receiver;
  readonly answerWith: (text: string) => void;
  readonly store: Store;
  readonly hookId: number;
  /** The address of the hook's log. */
  readonly log: string;
  readonly url: string;
}

/** A hook of a repository, a receiver behind it, and a worker that makes manual attempts, but was not started. */
function withHook(title: string, run: (scene: Scene) => Promise<void>): void {
  forEachEngine(title, async (store) => {
    let words = 'ok';
    await using receiver = await startReceiver((_, response) => void response.end(words));
    const worker = createDeliveryWorker({
      store,
      world: realWorld,
      log: createLog('silent'),
      metrics: createMetrics(),
      cipher: createSecretCipher([Buffer.alloc(32, 7)], realWorld),
      guard: createAddressGuard({ allowCidrs: ['127.0.0.0/8'] }),
    });
    await using server = await startManagement(store, realWorld, worker.manual);
    await server.call('POST', '/user/repos', { json: { name: 'doors' } });
    const { url } = receiver;
    const { body } = await server.call('POST', HOOKS, { json: { url, password: SECRET, encryption_type: 1 } });
    const answerWith = (text: string) => {
      words = text;
    };
    await run({ server, receiver, answerWith, store, hookId: body.id, log: `${HOOKS}/${body.id}/deliveries`, url });
    await worker.stop();
  });
}

interface Past {
  readonly state?: string;
  readonly kind?: string;
  readonly hour?: number;
}

async function addPast({ store, hookId, url }: Scene, { state = 'succeeded', kind = 'push', hour = 0 }: Past = {}) {
  const id = await enqueueTestDelivery(store, { hookId, url, nowMs: NOON + hour * HOUR_MS });
  await store.write(setStateSql, [id, state, kind]);
  return id;
}

function checkRefusal(answer: Answer, status: number, name: string): void {
  assert.deepEqual([answer.status, answer.body.error_code_name], [status, name]);
  assert.match(answer.body.trace_id, /^[0-9a-f]{32}$/);
}

const idsOf = (answer: Answer): number[] => answer.body.map((delivery: { id: number }) => delivery.id);

withHook('the log is read page by page, the newest first', async (scene) => {
  const { server, log } = scene;
  const ids: number[] = [];
  for (let hour = 0; hour < 5; hour += 1) ids.push(await addPast(scene, { hour }));
  const seen: number[][] = [];
  for (let path: string | undefined = `${log}?per_page=2&access_token=grace`; path !== undefined; ) {
    const page: Answer = await server.call('GET', path);
    assert.equal(page.status, 200);
    seen.push(idsOf(page));
    const link = page.headers.get('link') ?? '';
    assert.doesNotMatch(link, /access_token/);
    path = /<[^>]*\/api\/v5([^>]*)>; rel="next"/.exec(link)?.[1];
  }
  assert.deepEqual(seen, [[ids[4], ids[3]], [ids[2], ids[1]], [ids[0]]]);
});

withHook('the log is filtered by state, event and time, together too', async (scene) => {
  const { server, log } = scene;
  const dead = await addPast(scene, { state: 'dead', hour: 0 });
  const issue = await addPast(scene, { kind: 'issue', hour: 1 });
  const last = await addPast(scene, { state: 'dead', kind: 'issue', hour: 2 });
  const time = (hour: number) => encodeURIComponent(new Date(NOON + hour * HOUR_MS).toISOString());
  const cases: [query: string, expected: number[]][] = [
    ['', [last, issue, dead]],
    ['state=dead', [last, dead]],
    ['event=issue', [last, issue]],
    ['state=dead&event=issue', [last]],
    [`since=${time(1)}`, [last, issue]],
    ['since=2026-06-01T21:00:00+08:00', [last, issue]],
    [`until=${time(1)}`, [dead]],
    [`since=${time(1)}&until=${time(2)}`, [issue]],
    [`before=${issue}`, [dead]],
    ['state=pending', []],
  ];
  for (const [query, expected] of cases) assert.deepEqual(idsOf(await server.call('GET', `${log}?${query}`)), expected);
});

withHook('the log is filtered by status, by class of status, and by the UUID that the receiver saw', async (scene) => {
  const { server, log, store } = scene;
  const idByStatus = new Map<number, number>();
  for (const [hour, status] of [0, 200, 404, 500, 503].entries()) {
    const id = await addPast(scene, { hour });
    await store.write(setStatusSql, [id, status]);
    idByStatus.set(status, id);
  }
  const cases: [query: string, statuses: number[]][] = [
    ['status_code=500', [500]],
    ['status_code=5xx', [503, 500]],
    ['status_code=4xx', [404]],
    ['status_code=0', [0]],
    ['status_code=418', []],
  ];
  for (const [query, statuses] of cases)
    assert.deepEqual(
      idsOf(await server.call('GET', `${log}?${query}`)),
      statuses.map((status) => idByStatus.get(status)),
      query,
    );
  const { body } = await server.call('GET', log);
  for (const { id, uuid } of body) {
    assert.deepEqual(idsOf(await server.call('GET', `${log}?uuid=${uuid.toUpperCase()}`)), [id]);
    assert.equal((await server.call('GET', `${log}/${uuid}`)).body.id, id);
  }
  assert.deepEqual(idsOf(await server.call('GET', `${log}?uuid=${randomUUID()}`)), []);
  checkRefusal(await server.call('GET', `${log}/${randomUUID()}`), 404, 'NOT_EXIST');
});

withHook(
  'a delivery is found, read and sent again by the UUID of its announcement, under its own hook only',
  async (scene) => {
    const { server, log, url } = scene;
    const other = await server.call('POST', '/repos/grace/doors/hooks', { json: { url } });
    const events = [createSampleEvent('push', ACTOR, 'main', NOON), createSampleEvent('push', ACTOR, 'other', NOON)];
    const announced = [];
    for (const json of events) announced.push((await server.call('POST', '/repos/grace/doors/events', { json })).body);
    for (const { deliveries } of announced)
      for (const { id, uuid, hook_id } of deliveries) {
        const ownLog = log.replace(/hooks\/\d+/, `hooks/${hook_id}`);
        assert.deepEqual(idsOf(await server.call('GET', `${ownLog}?uuid=${uuid}`)), [id]);
        assert.equal((await server.call('POST', `${ownLog}/${uuid}/redeliver`)).body.id, id);
        const strange = log.replace(/hooks\/\d+/, `hooks/${hook_id === other.body.id ? scene.hookId : other.body.id}`);
        assert.deepEqual(idsOf(await server.call('GET', `${strange}?uuid=${uuid}`)), []);
      }
  },
);

withHook('the log has pages by number too, and its link leads on from any of them', async (scene) => {
  const { server, log } = scene;
  const ids: number[] = [];
  for (let hour = 0; hour < 5; hour += 1) ids.push(await addPast(scene, { hour }));
  assert.deepEqual(idsOf(await server.call('GET', `${log}?page=1&per_page=2`)), [ids[4], ids[3]]);
  const second = await server.call('GET', `${log}?page=2&per_page=2`);
  assert.deepEqual(idsOf(second), [ids[2], ids[1]]);
  const next = /<[^>]*\/api\/v5([^>]*)>; rel="next"/.exec(second.headers.get('link') ?? '')?.[1];
  assert.deepEqual(idsOf(await server.call('GET', next ?? '')), [ids[0]]);
  assert.deepEqual(idsOf(await server.call('GET', `${log}?page=4&per_page=2`)), []);
});

withHook('a parameter that nothing heeds is refused with those that are', async ({ server, log }) => {
  const answer = await server.call('GET', `${log}?status=500`);
  checkRefusal(answer, 400, 'BAD_REQUEST');
  assert.match(
    answer.body.error_message,
    /^Cannot list the deliveries: "status" is no parameter here, allowed: state, event, status_code, uuid, id, subject, since, until, before, page, per_page$/,
  );
  const replay = await server.call(
    'POST',
    `${log.replace('/deliveries', '')}/replay?since=2026-01-01T00:00:00Z&until=2026-01-02T00:00:00Z`,
  );
  checkRefusal(replay, 400, 'BAD_REQUEST');
  assert.match(replay.body.error_message, /"until" is no parameter here, allowed: since$/);
  const bridges = await server.call('GET', '/repos/grace/doors/bridges?page=2');
  checkRefusal(bridges, 400, 'BAD_REQUEST');
});

withHook('what is pending of a held hook is shown as held', async (scene) => {
  const { server, store, log, hookId } = scene;
  const id = await addPast(scene, { state: 'pending' });
  assert.deepEqual(idsOf(await server.call('GET', `${log}?state=pending`)), [id]);
  assert.deepEqual(idsOf(await server.call('GET', `${log}?state=held`)), []);
  await store.write(holdSql, [hookId]);
  assert.deepEqual(idsOf(await server.call('GET', `${log}?state=pending`)), []);
  const { body } = await server.call('GET', `${log}?state=held`);
  assert.deepEqual([body[0].id, body[0].state, body[0].next_attempt_at], [id, 'held', null]);
});

const badQueries = [
  'state=lost',
  'event=party',
  'since=yesterday',
  'until=1',
  'before=0',
  'per_page=101',
  'per_page=x',
  'page=0',
  'page=1001',
  'status_code=6xx',
  'status_code=5x',
  'status_code=-1',
  'uuid=1',
];
withHook('a filter that cannot be read is refused', async ({ server, log }) => {
  for (const query of badQueries) checkRefusal(await server.call('GET', `${log}?${query}`), 400, 'BAD_REQUEST');
});

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
  ];
  for (const [method, path] of requests) {
    assert.equal((await server.call(method, path, { token: '' })).status, 401);
    assert.equal((await server.call(method, path, { token: 'grace:all_projects' })).status, 403);
    assert.equal((await server.call(method, path, { token: 'linus' })).status, 403);
  }
  assert.equal(receiver.received.length, 0);
});
