/** Revocation: RFC 7009. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import {
  basic,
  callApi,
  postForm,
  refresh,
  registerApplication,
  request,
  startAuthorizationServer,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance, prepareTokens } from '../../../test/support/authorization/conformance.ts';
import { createStorePlace, openTestStore } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { realWorld } from '../../world.ts';
import { createSecret } from '../accounts/secret-text.ts';

const cases: Case[] = [
  [
    'V01 a valid, an unknown and an already revoked token answer 200 with the same empty JSON object (RFC 7009 §2.2)',
    async (bench) => {
      const { tokens, credentials } = await prepareTokens(bench);
      const revoke = (token: string) => postForm(`${bench.server.url}/oauth/revoke`, { token }, credentials);
      for (const token of [tokens.access_token, tokens.access_token, createSecret('access', realWorld), 'garbage']) {
        const answer = await revoke(token);
        assert.deepEqual([answer.status, answer.text, answer.headers.get('cache-control')], [200, '{}', 'no-store']);
      }
      const anonymous = await postForm(`${bench.server.url}/oauth/revoke`, { token: tokens.refresh_token });
      assert.deepEqual([anonymous.status, anonymous.json.error], [401, 'invalid_client']);
    },
  ],
  [
    'V02 V03 a refresh token takes its access tokens with it; an access token dies alone (§2.1)',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials } = await prepareTokens(bench);
      const revoke = (token: string) => postForm(`${server.url}/oauth/revoke`, { token }, credentials);
      await revoke(tokens.access_token);
      assert.equal(await callApi(server, tokens.access_token), 401);
      const next = (await refresh(server, tokens.refresh_token)).json;
      assert.equal(await callApi(server, String(next.access_token)), 200);
      await revoke(String(next.refresh_token));
      assert.equal(await callApi(server, String(next.access_token)), 401);
      assert.equal((await refresh(server, String(next.refresh_token))).json.error, 'invalid_grant');
    },
  ],
  [
    'V04 a token of another client is left alone (§2.1)',
    async (bench) => {
      const { server } = bench;
      const { tokens } = await prepareTokens(bench);
      const stranger = await registerApplication(server);
      for (const token of [tokens.access_token, tokens.refresh_token]) {
        const answer = await postForm(
          `${server.url}/oauth/revoke`,
          { token },
          basic(stranger.clientId, stranger.clientSecret),
        );
        assert.equal(answer.status, 200);
      }
      assert.equal(await callApi(server, tokens.access_token), 200);
    },
  ],
  [
    'V05 V06 a wrong or unknown token_type_hint does no harm; a missing token is invalid_request (§2.1)',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials } = await prepareTokens(bench);
      const url = `${server.url}/oauth/revoke`;
      await postForm(url, { token: tokens.access_token, token_type_hint: 'refresh_token' }, credentials);
      assert.equal(await callApi(server, tokens.access_token), 401);
      await postForm(url, { token: tokens.refresh_token, token_type_hint: 'pineapple' }, credentials);
      assert.equal((await refresh(server, tokens.refresh_token)).status, 400);
      assert.equal((await postForm(url, {}, credentials)).json.error, 'invalid_request');
      assert.equal((await request(url)).status, 405);
    },
  ],
  [
    'V07 a public client revokes by its client_id (§2.1)',
    async (bench) => {
      const { server } = bench;
      const { clientId } = await registerApplication(server, { isPublic: true });
      const token = createSecret('refresh', realWorld);
      assert.equal((await postForm(`${server.url}/oauth/revoke`, { token, client_id: clientId })).status, 200);
    },
  ],
  [
    'V08 scripts of any origin may call the protocol endpoints',
    async (bench) => {
      for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/introspect', '/oauth/userinfo']) {
        const preflight = await request(bench.server.url + path, {
          method: 'OPTIONS',
          headers: { origin: 'https://spa.example', 'access-control-request-method': 'POST' },
        });
        assert.equal(preflight.status, 204);
        assert.equal(preflight.headers.get('access-control-allow-origin'), '*');
        assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /Authorization/);
        const refused = await postForm(bench.server.url + path, {});
        assert.equal(refused.headers.get('access-control-allow-origin'), '*', 'errors too');
      }
    },
  ],
];

checkConformance('revocation', cases);

test('V09 while the database is away the answer is 503 with Retry-After, and no success', async (t) => {
  const place = await createStorePlace('sqlite');
  t.after(() => rmSync(place.dataDir, { recursive: true, force: true }));
  await using store = await openTestStore(place);
  let isAway = false;
  const checkPresent = async () => {
    if (isAway) throw new Failure('unavailable', 'Cannot use the database', { retryAfterSeconds: 1 });
  };
  const away: Store = {
    ...store,
    read: (...parameters) => checkPresent().then(() => store.read(...parameters)),
    readCached: (...parameters) => checkPresent().then(() => store.readCached(...parameters)),
    [Symbol.asyncDispose]: async () => {},
  };
  await using server = await startAuthorizationServer(away);
  const { clientId, clientSecret } = await registerApplication(server);
  isAway = true;
  const token = createSecret('access', realWorld);
  const answer = await postForm(`${server.url}/oauth/revoke`, { token }, basic(clientId, clientSecret));
  assert.deepEqual([answer.status, answer.json.error], [503, 'temporarily_unavailable']);
  assert.equal(answer.headers.get('retry-after'), '1');
});
