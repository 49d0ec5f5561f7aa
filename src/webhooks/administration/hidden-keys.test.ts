/** A token with a part of an administrator's rights changes webhooks whose keys it cannot read; real requests, both engines. */
import assert from 'node:assert/strict';
import { type ReceivedRequest, startReceiver } from '../../../test/support/network/receiver.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { createTestWorker } from '../../../test/support/webhooks/delivery-worker.ts';
import { HOOKS, startManagement } from '../../../test/support/webhooks/webhook-management.ts';
import type { Store } from '../../database/store.ts';
import type { Actor } from '../../operations/operation.ts';
import { realWorld } from '../../world.ts';
import { changeHook } from './hook-operations.ts';
import { implementHooks } from './implement-hooks.ts';

const ALL_RIGHTS: Actor = { userId: 'id-root', login: 'root', isAdmin: true };
const PART: Actor = { ...ALL_RIGHTS, isAdmin: false };

interface Scene {
  /** The URL that the webhook has, and the one that it is changed to. */
  readonly urls: readonly [string, string];
  /** `meanwhile` runs while the address is checked. */
  readonly change: (actor: Actor, changes: object, meanwhile?: () => Promise<void>) => Promise<unknown>;
  readonly changeAsOwner: (json: object) => Promise<void>;
  /** What the second receiver gets. */
  readonly sendToSecond: () => Promise<ReceivedRequest>;
}

async function withHook(store: Store, settings: object, run: (scene: Scene) => Promise<void>): Promise<void> {
  await using first = await startReceiver();
  await using second = await startReceiver();
  await using worker = createTestWorker(store);
  await using server = await startManagement(store, realWorld, worker);
  await server.call('POST', '/user/repos', { json: { name: 'doors' } });
  const { body: hook } = await server.call('POST', HOOKS, {
    json: { url: first.url, password: 'sesame', ...settings },
  });
  const path = `${HOOKS}/${hook.id}`;
  await run({
    urls: [first.url, second.url],
    change: async (actor, changes, meanwhile = async () => {}) => {
      const { guard } = server.management;
      const once = oneTime(meanwhile);
      const checkUrl = async (url: string) => {
        await once();
        return await guard.checkUrl(url);
      };
      const management = { ...server.management, guard: { checkUrl } };
      const all = implementHooks({ management, passwords: 'hidden' });
      const { handle } = all.find(({ operation }) => operation === changeHook)!;
      await handle(changeHook.input.parse({ id: hook.id, ...changes }), { actor, file: new Uint8Array() });
    },
    changeAsOwner: async (json) => {
      const { body } = await server.call('GET', path);
      assert.equal((await server.call('PATCH', path, { json: { url: body.url, ...json } })).status, 200);
    },
    sendToSecond: async () => {
      assert.equal((await server.call('POST', `${path}/tests`)).status, 204);
      return second.received.at(-1)!;
    },
  });
}

function oneTime(run: () => Promise<void>): () => Promise<void> {
  let once: Promise<void> | undefined;
  return () => (once ??= run());
}

async function checkRefused(change: Promise<unknown>, title: string): Promise<void> {
  const message = /could show its password, which the token may not read; send a password with it/;
  await assert.rejects(change, { code: 'forbidden', message }, title);
}

forEachEngine('a part of the rights cannot let a key reach a receiver that it chose', async (store) => {
  await withHook(store, { encryption_type: 1 }, async ({ urls: [first, second], change, changeAsOwner }) => {
    for (const changes of [
      { url: second },
      { url: `${first}/other` },
      { url: second, encryption_type: 0, profile: 'gitcode' },
      { encryption_type: 0 },
    ])
      await checkRefused(change(PART, changes), JSON.stringify(changes));
    for (const changes of [{ url: first, push_events: false }, { profile: 'github' }, { encryption_type: 1 }])
      await change(PART, changes);
    await changeAsOwner({ encryption_type: 0 });
    await change(PART, { profile: 'github' });
    await checkRefused(change(PART, { profile: 'gitcode' }), 'the profile sends the password that it only signed with');
    await changeAsOwner({ remove_password: true });
    await checkRefused(change(PART, { url: second }), 'the former key signs for a day more');
    await change(ALL_RIGHTS, { url: second });
  });
});

forEachEngine(
  'a part of the rights moves a webhook with a password of its own, and no former key signs',
  async (store) => {
    await withHook(
      store,
      { encryption_type: 0 },
      async ({ urls: [first, second], change, changeAsOwner, sendToSecond }) => {
        await changeAsOwner({ password: 'another' });
        await change(PART, { url: second, password: 'mine' });
        const { headers } = await sendToSecond();
        assert.equal(headers['x-gitcode-token'], 'mine');
        assert.match(String(headers['webhook-signature']), /^v1,\S+$/, 'one signature');
        await changeAsOwner({ url: first, password: 'sesame' });
        await change(PART, { url: second, remove_password: true });
        const without = await sendToSecond();
        assert.deepEqual(
          [without.headers['x-gitcode-token'], without.headers['webhook-signature']],
          [undefined, undefined],
        );
        await change(PART, { url: first });
      },
    );
  },
);

forEachEngine('a part of the rights gets no key that came while its change was under way', async (store) => {
  await withHook(store, { password: '' }, async ({ urls: [first, second], change, changeAsOwner, sendToSecond }) => {
    const setKey = () => changeAsOwner({ password: 'sesame' });
    await change(PART, { url: second, remove_password: true }, setKey);
    const { headers } = await sendToSecond();
    assert.deepEqual([headers['x-gitcode-token'], headers['webhook-signature']], [undefined, undefined]);
    await changeAsOwner({ url: first });
    const setAndRemove = async () => {
      await setKey();
      await changeAsOwner({ remove_password: true });
    };
    await checkRefused(change(PART, { url: second }, setAndRemove), 'a key that came and went signs for a day');
  });
  await withHook(store, { password: '' }, async ({ urls: [, second], change, changeAsOwner }) => {
    const setKey = () => changeAsOwner({ password: 'sesame' });
    await checkRefused(change(PART, { url: second }, setKey), 'a webhook without a key got one');
  });
});
