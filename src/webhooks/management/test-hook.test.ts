/** A test of a webhook sends an event, over the API of GitCode. */
import assert from 'node:assert/strict';
import { startReceiver } from '../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { createTestWorker } from '../../../test/support/webhooks/delivery-worker.ts';
import {
  HOOKS,
  type ManagementServer,
  startManagement,
  withDoors,
} from '../../../test/support/webhooks/webhook-management.ts';
import { statement } from '../../database/store.ts';

const URL_1 = 'http://127.0.0.1:8001/hook';
const lastDeliverySql = statement<{ event_kind: string; body: Uint8Array }>(
  'test-last-delivery',
  `SELECT d.event_kind, c.body FROM deliveries d JOIN delivery_contents c ON c.delivery_id = d.id
   ORDER BY d.id DESC LIMIT 1`,
);

async function createHook(server: ManagementServer, flags: object): Promise<string> {
  const { body } = await server.call('POST', HOOKS, { json: { url: URL_1, push_events: false, ...flags } });
  return `${HOOKS}/${body.id}/tests`;
}

withDoors(
  'a test sends the event that is chosen, else the first one that the hook is subscribed to',
  async (server, store) => {
    const readKind = async () => (await store.read(lastDeliverySql, []))[0]?.event_kind;
    const path = await createHook(server, { issues_events: true, merge_requests_events: true });
    for (const [options, expected] of [
      [{}, 'issue'],
      [{ json: { event: 'merge_request' } }, 'merge_request'],
      [{ form: { event: 'issue' } }, 'issue'],
      [{ json: { event: '' } }, 'issue'],
    ] as const) {
      assert.equal((await server.call('POST', path, options)).status, 204, JSON.stringify(options));
      assert.equal(await readKind(), expected, JSON.stringify(options));
    }
    assert.equal((await server.call('POST', `${path}?event=merge_request`)).status, 204);
    assert.equal(await readKind(), 'merge_request');
    assert.equal((await server.call('POST', await createHook(server, {}))).status, 204);
    assert.equal(await readKind(), 'push', 'a hook without a subscription can be tried');
  },
);

withDoors('a test of an event that the hook is not subscribed to is refused, and not counted', async (server) => {
  const path = await createHook(server, { issues_events: true });
  for (const [event, message] of [
    ['push', 'event must be one that it is subscribed to (issue), got "push"'],
    ['notice', 'event must be one that it is subscribed to (issue), got "notice"'],
    ['pull', 'event must be one of push, tag_push, issue, note, merge_request, notice, got "pull"'],
  ]) {
    const { status, body } = await server.call('POST', path, { json: { event } });
    assert.deepEqual([status, body.message], [400, `Cannot test the webhook: ${message}`]);
  }
  assert.deepEqual(server.attempts, []);
});

forEachEngine('a hook of the repository of notices can be tested with a notice', async (store) => {
  await using server = await startManagement(store, undefined, { noticeRepository: 'Grace/Doors' });
  await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  const path = await createHook(server, { issues_events: true });
  assert.equal((await server.call('POST', path)).status, 204, 'an ordinary issue without a choice');
  assert.equal((await server.call('POST', path, { json: { event: 'notice' } })).status, 204);
  const [delivery] = await store.read(lastDeliverySql, []);
  const { object_attributes, labels } = JSON.parse(Buffer.from(delivery?.body ?? []).toString());
  assert.deepEqual(
    [object_attributes.title, object_attributes.action, ...labels.map(({ title }: { title: string }) => title)],
    ['A webhook of example/sample fails', 'open', 'hook', 'failing'],
  );
  const { status } = await server.call('POST', await createHook(server, { note_events: true }), {
    json: { event: 'notice' },
  });
  assert.equal(status, 400, 'notices are issues');
});

forEachEngine('of the tests of one person four are under way at once, and others go on', async (store) => {
  const isAnswered = Promise.withResolvers<void>();
  await using receiver = await startReceiver((_, response) => void isAnswered.promise.then(() => response.end()));
  // Also when the test fails, since the worker waits for its attempts.
  using _end = { [Symbol.dispose]: isAnswered.resolve };
  await using worker = createTestWorker(store);
  await using server = await startManagement(store, undefined, worker);
  const createTests = async (token: string) => {
    await server.call('POST', '/user/repos', { json: { name: 'doors' }, token });
    const hooks = `/repos/${token}/doors/hooks`;
    const { body } = await server.call('POST', hooks, { json: { url: receiver.url }, token });
    return () => server.call('POST', `${hooks}/${body.id}/tests`, { token });
  };
  const testOfGrace = await createTests('grace');
  const testOfLinus = await createTests('linus');
  const underWay = [1, 2, 3, 4].map(testOfGrace);
  await receiver.waitFor(4);
  const refused = await testOfGrace();
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '10']);
  assert.match(refused.body.message, /^Cannot test the webhook: other tests are under way/);
  underWay.push(testOfLinus());
  await receiver.waitFor(5);
  isAnswered.resolve();
  for (const { status } of await Promise.all(underWay)) assert.equal(status, 204);
  assert.equal((await testOfGrace()).status, 204, 'its places are free again');
});
