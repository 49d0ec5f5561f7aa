/** People manage their own tokens and applications by API. */
import assert from 'node:assert/strict';
import {
  basic,
  callApi,
  type Fields,
  postForm,
  registerApplication,
  request,
  type SignedIn,
} from '../../../test/support/authorization/authorization-server.ts';
import {
  type Bench,
  type Case,
  checkConformance,
  prepareTokens,
} from '../../../test/support/authorization/conformance.ts';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { isSecretOf } from '../accounts/secret-text.ts';
import { createPersonalToken, revokePersonalToken } from '../tokens/personal-token.ts';

const USER = '/api/v5/user';

/** A token that the person created, with the same scope as the application's token. */
async function makePersonal({ server }: Bench, { user }: SignedIn): Promise<string> {
  const form = { userId: user.id, name: 'by hand', scopes: ['all_user', 'all_hook'] as const, expiresAtMs: undefined };
  return (await createPersonalToken(server.store, server.world, form)).secret;
}

const cases: Case[] = [
  [
    'an application cannot make tokens or change applications in the name of its user, or it would outlive its consent',
    async (bench) => {
      const { server } = bench;
      const { tokens, person } = await prepareTokens(bench);
      const own = await registerApplication(server, {}, person.user.id);
      const call = (path: string, method: string, body: object) =>
        request(`${server.url}${USER}${path}`, {
          method,
          headers: { authorization: `Bearer ${tokens.access_token}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
      const form = { name: 'x', scopes: ['all_user'], redirect_uris: ['https://x.example/'] };
      assert.equal((await call('/access_tokens', 'POST', form)).status, 403);
      assert.equal((await call('/applications', 'POST', form)).status, 403);
      for (const [path, method] of [
        [`/applications/${own.clientId}`, 'PATCH'],
        [`/applications/${own.clientId}`, 'DELETE'],
        [`/applications/${own.clientId}/secrets`, 'POST'],
        [`/applications/${own.clientId}/secrets/1`, 'DELETE'],
      ] as const)
        assert.equal((await call(path, method, {})).status, 403, path);
    },
  ],
  [
    'an application reads the profile that the consent page names, and no tokens or applications',
    async (bench) => {
      const { server } = bench;
      const { tokens, person } = await prepareTokens(bench, 'all_user');
      const own = await registerApplication(server, {}, person.user.id);
      await makePersonal(bench, person);
      assert.equal(await callApi(server, tokens.access_token), 200);
      const headers = { authorization: `Bearer ${tokens.access_token}` };
      for (const path of ['/access_tokens', '/applications', `/applications/${own.clientId}`]) {
        const answer = await request(`${server.url}${USER}${path}`, { headers });
        assert.equal(answer.status, 403, path);
        assert.match(answer.text, /takes a personal access token/);
      }
    },
  ],
  [
    'a personal token is made, listed without its text, used and revoked by API',
    async (bench) => {
      const { server } = bench;
      const personal = await makePersonal(bench, (await prepareTokens(bench)).person);
      const call = (path: string, init: RequestInit = {}) =>
        request(`${server.url}${USER}${path}`, {
          ...init,
          headers: { authorization: `Bearer ${personal}`, 'content-type': 'application/json' },
        });
      const body = JSON.stringify({ name: 'ci', scopes: ['all_user'], expires_in_days: 7 });
      const made = await call('/access_tokens', { method: 'POST', body });
      assert.equal(made.status, 201, made.text);
      assert.equal(made.headers.get('cache-control'), 'no-store');
      const token = String(made.json.token);
      assert.equal(await callApi(server, token), 200);
      const listed = await call('/access_tokens');
      assert.ok(!listed.text.includes(token));
      const more = JSON.stringify({ name: 'ci', scopes: ['all_key'] });
      assert.equal((await call('/access_tokens', { method: 'POST', body: more })).status, 403, 'no scope it has not');
      const unknown = JSON.stringify({ name: 'ci', scopes: ['everything'] });
      assert.equal((await call('/access_tokens', { method: 'POST', body: unknown })).status, 400);
      assert.equal((await call(`/access_tokens/${String(made.json.id)}`, { method: 'DELETE' })).status, 204);
      assert.equal((await call(`/access_tokens/${String(made.json.id)}`, { method: 'DELETE' })).status, 404);
      assert.equal(await callApi(server, token), 401);
    },
  ],
  [
    'tokens and applications are listed a page at a time, with the headers of every other list',
    async (bench) => {
      const { server } = bench;
      const { person } = await prepareTokens(bench);
      const personal = await makePersonal(bench, person);
      for (const _ of [1, 2]) {
        await makePersonal(bench, person);
        await registerApplication(server, {}, person.user.id);
      }
      await registerApplication(server, {}, person.user.id);
      const list = async (path: string) => {
        const answer = await request(`${server.url}${USER}${path}`, {
          headers: { authorization: `Bearer ${personal}` },
        });
        return { ...answer, items: answer.json as unknown as { id?: string; client_id?: string }[] };
      };
      for (const path of ['/access_tokens', '/applications']) {
        const [first, second] = [await list(`${path}?per_page=2`), await list(`${path}?per_page=2&page=2`)];
        assert.equal(first.headers.get('total_count'), '3');
        assert.equal(first.headers.get('total_page'), '2');
        assert.match(first.headers.get('link') ?? '', /per_page=2&page=2>; rel="next"/);
        const ids = [...first.items, ...second.items].map((item) => item.id ?? item.client_id);
        assert.deepEqual([first.items.length, second.items.length, new Set(ids).size], [2, 1, 3]);
        for (const wrong of ['page=0', 'page=x', 'per_page=101', 'page=1.5', 'page='])
          assert.equal((await list(`${path}?${wrong}`)).status, 400, wrong);
      }
    },
  ],
  [
    'a token that a personal token made ends with it at the latest, and so does what that one made',
    async (bench) => {
      const { server } = bench;
      const { person } = await prepareTokens(bench);
      const { secret, token } = await createPersonalToken(server.store, server.world, {
        userId: person.user.id,
        name: 'a day',
        scopes: ['all_user'],
        expiresAtMs: server.world.nowMs() + 86_400_000,
      });
      const make = (bearer: string, more: object = {}) =>
        request(`${server.url}${USER}/access_tokens`, {
          method: 'POST',
          headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
          body: JSON.stringify({ name: 'child', scopes: ['all_user'], ...more }),
        });
      for (const days of [null, 2]) {
        const refused = await make(secret, { expires_in_days: days });
        assert.equal(refused.status, 400, refused.text);
        assert.match(refused.text, /must not go beyond/);
      }
      const child = await make(secret);
      assert.equal(Date.parse(String(child.json.expires_at)), token.expiresAtMs);
      const grandchild = await make(String(child.json.token));
      const tokens = [secret, String(child.json.token), String(grandchild.json.token)];
      const statuses = () => Promise.all(tokens.map((each) => callApi(server, each)));
      assert.deepEqual(await statuses(), [200, 200, 200]);
      const other = await makePersonal(bench, person);
      const revoked = await request(`${server.url}${USER}/access_tokens/${token.tokenId}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${other}` },
      });
      assert.equal(revoked.status, 204);
      assert.deepEqual(await statuses(), [401, 401, 401]);
      assert.equal(await callApi(server, other), 200);
    },
  ],
  [
    'a token that is created while its parent is revoked does not outlive the parent',
    async (bench) => {
      const { server } = bench;
      const { person } = await prepareTokens(bench);
      const form = { userId: person.user.id, name: 'x', scopes: ['all_user'], expiresAtMs: undefined } as const;
      const rounds = await Promise.all(
        Array.from({ length: 10 }, async () => {
          const parent = await createPersonalToken(server.store, server.world, form);
          const { tokenId } = parent.token;
          const [child] = await Promise.allSettled([
            createPersonalToken(server.store, server.world, { ...form, parentId: tokenId }),
            revokePersonalToken(server.store, server.world, { userId: person.user.id, tokenId }),
          ]);
          return child.status === 'rejected' ? 401 : callApi(server, child.value.secret);
        }),
      );
      assert.deepEqual(new Set(rounds), new Set([401]));
    },
  ],
  [
    'of two that delete the two secrets of an application at once, one keeps the last',
    async (bench) => {
      const { server } = bench;
      const { person } = await prepareTokens(bench);
      const bearer = await makePersonal(bench, person);
      const headers = { authorization: `Bearer ${bearer}` };
      for (let round = 0; round < 10; round += 1) {
        const { clientId } = await registerApplication(server, {}, person.user.id);
        const secrets = `${server.url}${USER}/applications/${clientId}/secrets`;
        assert.equal((await request(secrets, { method: 'POST', headers })).status, 201);
        const remove = (slot: number) => request(`${secrets}/${slot}`, { method: 'DELETE', headers });
        const answers = await Promise.all([remove(1), remove(2)]);
        assert.deepEqual(
          answers.map(({ status }) => status).toSorted((one, other) => one - other),
          [204, 409],
        );
      }
    },
  ],
  [
    'a personal token ends with its time and shows when it was last used',
    async (bench) => {
      const { server } = bench;
      const { person } = await prepareTokens(bench);
      const { secret } = await createPersonalToken(server.store, server.world, {
        userId: person.user.id,
        name: 'x',
        scopes: ['all_user'],
        // Longer than the earlier calls take on a busy machine.
        expiresAtMs: server.world.nowMs() + 600_000,
      });
      const listing = () =>
        request(`${server.url}${USER}/access_tokens`, { headers: { 'private-token': secret } }).then(
          (answer) => JSON.parse(answer.text) as Fields[],
        );
      await listing();
      const used = await waitUntil(async () => (await listing())[0]?.last_used_at);
      assert.match(used, /Z$/);
      server.advance(600_001);
      assert.equal(await callApi(server, secret), 401);
    },
  ],
  [
    'S11 an application, whose id is no user id, is registered, changed, given a second secret and deleted by API; other people cannot see it',
    async (bench) => {
      const { server } = bench;
      const personal = await makePersonal(bench, (await prepareTokens(bench)).person);
      const stranger = await makePersonal(bench, (await prepareTokens(bench)).person);
      const caller =
        (token: string) =>
        (path: string, method = 'GET', body?: object) =>
          request(`${server.url}${USER}/applications${path}`, {
            method,
            headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          });
      const call = caller(personal);
      const form = { name: 'App', redirect_uris: ['https://app.example/cb'] };
      const made = await call('', 'POST', form);
      assert.equal(made.status, 201, made.text);
      const path = `/${String(made.json.client_id)}`;
      assert.match(String(made.json.client_id), /^app_/);
      assert.ok(isSecretOf('client', String(made.json.client_secret)));
      assert.equal((await call('', 'POST', { ...form, redirect_uris: ['http://app.example/'] })).status, 400);
      assert.equal((await caller(stranger)(path)).status, 404);
      assert.equal((await caller(stranger)(path, 'DELETE')).status, 404);
      const changed = await call(path, 'PATCH', { name: 'Renamed' });
      assert.deepEqual([changed.json.name, changed.json.redirect_uris], ['Renamed', form.redirect_uris]);
      const second = await call(`${path}/secrets`, 'POST');
      assert.equal(second.status, 201);
      assert.equal((await call(`${path}/secrets`, 'POST')).status, 409, 'two live at most');
      for (const secret of [made.json.client_secret, second.json.client_secret])
        assert.equal((await authenticate(bench, made.json.client_id, secret)).status, 200);
      assert.equal((await call(`${path}/secrets/1`, 'DELETE')).status, 204);
      assert.equal((await authenticate(bench, made.json.client_id, made.json.client_secret)).status, 401);
      assert.equal((await call(`${path}/secrets/2`, 'DELETE')).status, 409, 'never the last one');
      assert.equal((await call(path, 'DELETE')).status, 204);
      assert.equal((await call(path)).status, 404);
    },
  ],
  [
    'a secret that travelled in a query is remarked on the application',
    async (bench) => {
      const { server } = bench;
      const { person } = await prepareTokens(bench);
      const created = await registerApplication(server, {}, person.user.id);
      const headers = { authorization: `Bearer ${await makePersonal(bench, person)}` };
      const query = new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: 'x',
        client_id: created.clientId,
        client_secret: created.clientSecret,
      });
      await request(`${server.url}/oauth/token?${query.toString()}`, { method: 'POST' });
      const seen = await waitUntil(async () => {
        const { json } = await request(`${server.url}${USER}/applications/${created.clientId}`, { headers });
        return json.secret_seen_in_query_at as string | null;
      });
      assert.match(seen, /Z$/);
    },
  ],
];

function authenticate({ server }: Bench, clientId: unknown, secret: unknown) {
  return postForm(`${server.url}/oauth/revoke`, { token: 'x' }, basic(String(clientId), String(secret)));
}

checkConformance('the user API', cases);
