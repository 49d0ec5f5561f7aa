/** Changes of the key decide which keys sign a delivery; with real requests, on both engines. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { type ReceivedRequest, startReceiver } from '../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { createTestWorker } from '../../../test/support/webhooks/delivery-worker.ts';
import { type ManagementServer, startManagement } from '../../../test/support/webhooks/webhook-management.ts';
import type { Store } from '../../database/store.ts';
import { realWorld } from '../../world.ts';

const HOOKS = '/repos/grace/doors/hooks';

interface Scene {
  readonly change: (json: object) => ReturnType<ManagementServer['call']>;
  /** The keys whose signatures a delivery has, in their order. */
  readonly listSigning: (keys: readonly string[]) => Promise<string[]>;
}

async function withHook(store: Store, password: string, run: (scene: Scene) => Promise<void>): Promise<void> {
  await using receiver = await startReceiver();
  await using worker = createTestWorker(store);
  await using server = await startManagement(store, realWorld, worker);
  await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  const { url } = receiver;
  const { body } = await server.call('POST', HOOKS, { json: { url, password, encryption_type: 1 } });
  const path = `${HOOKS}/${body.id}`;
  await run({
    change: (json) => server.call('PATCH', path, { json: { url, ...json } }),
    listSigning: async (keys) => {
      assert.equal((await server.call('POST', `${path}/tests`)).status, 204);
      const sent = receiver.received.at(-1)!;
      const signatures = String(sent.headers['webhook-signature']).split(' ');
      const known = keys.map((key) => sign(key, sent));
      assert.deepEqual(
        signatures.filter((signature) => !known.includes(signature)),
        [],
      );
      return signatures.map((signature) => keys[known.indexOf(signature)]!);
    },
  });
}

/** The signature of Standard Webhooks 1.0. */
function sign(key: string, { headers, body }: ReceivedRequest): string {
  const [id, timestamp] = [String(headers['webhook-id']), String(headers['webhook-timestamp'])];
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}

forEachEngine(
  'every former key signs beside the new one, however often the key changes within a day',
  async (store) => {
    await withHook(store, 'first', async ({ change, listSigning }) => {
      for (const password of ['second', 'third']) assert.equal((await change({ password })).body.password, password);
      assert.deepEqual(await listSigning(['first', 'second', 'third']), ['third', 'second', 'first']);
      await change({ remove_password: true });
      assert.deepEqual(await listSigning(['first', 'second', 'third']), ['third', 'second', 'first']);
      await change({ password: 'first' });
      assert.deepEqual(await listSigning(['first', 'second', 'third']), ['first', 'third', 'second']);
    });
  },
);

forEachEngine('no key is lost in concurrent changes', async (store) => {
  await withHook(store, 'first', async ({ change, listSigning }) => {
    const keys = ['second', 'third', 'fourth', 'fifth', 'sixth'];
    const answers = await Promise.all(keys.map((password) => change({ password })));
    assert.deepEqual(
      answers.map(({ status }) => status),
      keys.map(() => 200),
    );
    const signing = await listSigning(['first', ...keys]);
    assert.deepEqual(signing.toSorted(), ['first', ...keys].sort());
  });
});
