/** Concurrent changes of OAuth applications, by API and in the store. */
import assert from 'node:assert/strict';
import {
  createPerson,
  registerApplication,
  request,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Bench, type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { hasCode } from '../../../test/support/store/note-store.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';
import { addSecret, deleteApplication, setApplicationDisabled, updateApplication } from './application.ts';
import { listSecrets } from './application-secret-store.ts';
import { findApplication } from './application-store.ts';

const SAFE = 'https://client.example/cb';
const COMPROMISED = 'https://old.client.example/cb';

async function prepareOwner({ server }: Bench) {
  const { user } = await createPerson(server);
  const form = { userId: user.id, name: 'by hand', scopes: ['all_user'] as const, expiresAtMs: undefined };
  const { secret } = await createPersonalToken(server.store, server.world, form);
  const call = (method: string, path: string, body: object = {}) =>
    request(`${server.url}/api/v5/user/applications${path}`, {
      method,
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  return { user, call };
}

const cases: Case[] = [
  [
    'a redirect URI that one call removes does not come back by another call that changes the name',
    async (bench) => {
      const { server } = bench;
      const { user, call } = await prepareOwner(bench);
      for (let round = 0; round < 10; round += 1) {
        const { clientId } = await registerApplication(server, { redirectUris: [SAFE, COMPROMISED] }, user.id);
        const answers = await Promise.all([
          call('PATCH', `/${clientId}`, { name: 'Renamed' }),
          call('PATCH', `/${clientId}`, { redirect_uris: [SAFE] }),
          call('PATCH', `/${clientId}`, { description: 'Shows charts' }),
        ]);
        for (const answer of answers) assert.equal(answer.status, 200, answer.text);
        const { name, description, redirectUris } = (await findApplication(server.store, clientId))!;
        assert.deepEqual([name, description, redirectUris], ['Renamed', 'Shows charts', [SAFE]]);
      }
    },
  ],
  [
    'what is done to an application that another call has deleted is not found, and not recorded',
    async (bench) => {
      const { server } = bench;
      const { store, world } = server;
      const { user } = await createPerson(server);
      const { application, clientId } = await registerApplication(server, {}, user.id);
      const actor = { userId: user.id };
      await deleteApplication(store, world, { application, actor });
      const before = await listEvents(store, { userId: user.id, limit: 20 });
      for (const late of [
        () => updateApplication(store, world, { application, change: { name: 'Late' }, actor }),
        () => addSecret(store, world, { application, actor }),
        () => setApplicationDisabled(store, world, { application, isDisabled: true, actor }),
        () => deleteApplication(store, world, { application, actor }),
      ])
        await assert.rejects(late(), hasCode('not_found'));
      assert.deepEqual(await listSecrets(store, clientId), []);
      assert.deepEqual(await listEvents(store, { userId: user.id, limit: 20 }), before);
    },
  ],
  [
    'what leaves an application as it is is not recorded, and keeps the time at which it was disabled',
    async (bench) => {
      const { server } = bench;
      const { store, world } = server;
      const { user, call } = await prepareOwner(bench);
      const { application, clientId } = await registerApplication(server, { redirectUris: [SAFE] }, user.id);
      const actor = { userId: user.id };
      const countEvents = async () => (await listEvents(store, { userId: user.id, limit: 50 })).length;
      const before = await countEvents();
      const switchTo = (isDisabled: boolean) =>
        setApplicationDisabled(store, world, { application, isDisabled, actor });
      await switchTo(false);
      assert.equal((await call('PATCH', `/${clientId}`, { redirect_uris: [SAFE] })).status, 200);
      assert.equal(await countEvents(), before);
      await switchTo(true);
      const disabled = await findApplication(store, clientId);
      server.advance(1000);
      await switchTo(true);
      assert.deepEqual(await findApplication(store, clientId), disabled);
      assert.equal(await countEvents(), before + 1);
    },
  ],
  [
    'an application without a secret cannot demand the secret at each refresh',
    async (bench) => {
      const { call } = await prepareOwner(bench);
      const form = { name: 'Native', public: true, redirect_uris: [SAFE] };
      const refused = await call('POST', '', { ...form, authenticated_refresh: true });
      assert.equal(refused.status, 400, refused.text);
      assert.match(refused.text, /authenticated_refresh must not be set: a public application has no secret/);
      const made = await call('POST', '', form);
      assert.equal(made.status, 201, made.text);
      const path = `/${String(made.json.client_id)}`;
      assert.equal((await call('PATCH', path, { authenticated_refresh: true })).status, 400);
      assert.equal((await call('PATCH', path, { name: 'Renamed' })).json.authenticated_refresh, false);
    },
  ],
];

checkConformance('changes of applications', cases);
