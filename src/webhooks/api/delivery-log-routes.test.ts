/** The log of deliveries: its pages and its filters. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { enqueueTestDelivery } from '../../../test/support/webhooks/deliveries-store.ts';
import {
  ACTOR,
  addPast,
  checkRefusal,
  HOUR_MS,
  holdSql,
  idsOf,
  NOON,
  setStatusSql,
  withHook,
} from '../../../test/support/webhooks/hook-log.ts';
import { type Answer, HOOKS, startManagement } from '../../../test/support/webhooks/webhook-management.ts';
import { createSampleEvent } from '../events/sample-event.ts';

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

// Ids are positive integers below 2^53 that rise with time: from September 2032 on they have sixteen digits.
forEachEngine(
  'the pages of the log follow each other when ids have sixteen digits',
  async (store) => {
    await using server = await startManagement(store);
    await server.call('POST', '/user/repos', { json: { name: 'doors' } });
    const url = 'http://127.0.0.1:9001/';
    const { body: hook } = await server.call('POST', HOOKS, { json: { url } });
    const ids: number[] = [];
    for (let count = 0; count < 3; count += 1)
      ids.push(await enqueueTestDelivery(store, { hookId: hook.id, url, nowMs: NOON }));
    assert.ok(ids.every((id) => id >= 1e15));
    const first = await server.call('GET', `${HOOKS}/${hook.id}/deliveries?per_page=2`);
    const link = /<[^>]*\/api\/v5([^>]*)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
    const second = await server.call('GET', link);
    assert.deepEqual([second.status, [first, second].flatMap(idsOf)], [200, ids.toReversed()]);
    assert.deepEqual(idsOf(await server.call('GET', `${HOOKS}/${hook.id}/deliveries?id=${ids[1]}`)), [ids[1]]);
    const beyond = await server.call('GET', `${HOOKS}/${hook.id}/deliveries?before=${2 ** 53}`);
    checkRefusal(beyond, 400, 'BAD_REQUEST');
  },
  { world: createStillWorld(Date.UTC(2033, 0, 1)) },
);

forEachEngine('links repeat the path of the caller as it was encoded', async (store) => {
  await using server = await startManagement(store);
  await server.call('POST', '/user/repos', { json: { name: 'kiosk' } });
  // The KELVIN SIGN, whose lower case is "k".
  const hooks = '/repos/grace/%E2%84%AAiosk/hooks';
  const url = 'http://127.0.0.1:9001/';
  const { body: hook } = await server.call('POST', hooks, { json: { url } });
  for (let count = 0; count < 2; count += 1) await enqueueTestDelivery(store, { hookId: hook.id, url, nowMs: NOON });
  for (const path of [hooks, `${hooks}/${hook.id}/deliveries`]) {
    const page = await server.call('GET', `${path}?per_page=1`);
    assert.equal(page.status, 200);
    assert.match(page.headers.get('link') ?? '', new RegExp(`/api/v5${path}\\?per_page=1&`));
  }
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

withHook(
  'the log is filtered by status of an attempt, by class, and by the UUID that the receiver saw',
  async (scene) => {
    const { server, log, store } = scene;
    const idByStatus = new Map<number, number>();
    for (const [hour, status] of [0, 200, 404, 500, 503].entries()) {
      const id = await addPast(scene, { hour });
      await store.write(setStatusSql, [id, status]);
      idByStatus.set(status, id);
    }
    await addPast(scene, { hour: 5, state: 'canceled' });
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
  },
);

withHook(
  'a delivery is found, read and sent again by the UUID of its event, under its own hook only',
  async (scene) => {
    const { server, log, url } = scene;
    const other = await server.call('POST', '/repos/grace/doors/hooks', { json: { url } });
    const events = [createSampleEvent('push', ACTOR, 'main', NOON), createSampleEvent('push', ACTOR, 'other', NOON)];
    const published = [];
    for (const json of events) published.push((await server.call('POST', '/repos/grace/doors/events', { json })).body);
    for (const { deliveries } of published)
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

withHook('a call that takes no parameter refuses one', async (scene) => {
  const { server, log } = scene;
  const id = await addPast(scene, { state: 'dead' });
  const calls: [method: string, path: string, status: number][] = [
    ['GET', `${log}/${id}`, 200],
    ['POST', `${log}/${id}/redeliver`, 202],
    ['POST', log.replace('/deliveries', '/send-waiting'), 202],
  ];
  for (const [method, path, status] of calls) {
    const refused = await server.call(method, `${path}?dry_run=1`);
    checkRefusal(refused, 400, 'BAD_REQUEST');
    assert.match(refused.body.error_message, /"dry_run" is no parameter here, no parameter is allowed$/);
    assert.equal((await server.call(method, `${path}?access_token=grace`)).status, status, path);
  }
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
