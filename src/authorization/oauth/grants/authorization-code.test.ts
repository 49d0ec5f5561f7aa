/** A code is exchanged once, by its client: RFC 6749 §4.1.3. */
import assert from 'node:assert/strict';
import {
  CALLBACK,
  callApi,
  obtainTokens,
  postForm,
  refresh,
  registerApplication,
} from '../../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance, prepareExchange } from '../../../../test/support/authorization/conformance.ts';
import { createSecret } from '../../accounts/secret-text.ts';
import { disableUserStatement, enableUserStatement } from '../../accounts/user-store.ts';

const cases: Case[] = [
  [
    'T14 an unknown, a garbled and an expired code are invalid_grant with one description (§5.2)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepareExchange(bench);
      const unknown = await postForm(tokenUrl, { ...exchange, code: createSecret('code', bench.server.world) });
      const garbled = await postForm(tokenUrl, { ...exchange, code: 'x' });
      bench.server.advance(61_000);
      const expired = await postForm(tokenUrl, exchange);
      for (const answer of [unknown, garbled, expired]) {
        assert.equal(answer.status, 400);
        assert.equal(answer.json.error, 'invalid_grant');
        assert.deepEqual(answer.json, unknown.json);
      }
    },
  ],
  [
    "T15 CVE-2026-16089 a code is bound to its client: another client's valid credentials get invalid_grant and revoke nothing (§4.1.3)",
    async (bench) => {
      const { exchange, tokenUrl } = await prepareExchange(bench);
      const stranger = await registerApplication(bench.server);
      const stolen = { ...exchange, client_id: stranger.clientId, client_secret: stranger.clientSecret };
      assert.equal((await postForm(tokenUrl, stolen)).json.error, 'invalid_grant');
      const answer = await postForm(tokenUrl, exchange);
      assert.equal(answer.status, 200);
      assert.equal((await postForm(tokenUrl, stolen)).json.error, 'invalid_grant');
      assert.equal(await callApi(bench.server, String(answer.json.access_token)), 200);
    },
  ],
  [
    'T16 T17 redirect_uri may be left out (contract); when sent it must be the authorized one (§4.1.3)',
    async (bench) => {
      const absent = await prepareExchange(bench);
      assert.equal((await postForm(absent.tokenUrl, absent.exchange)).status, 200);
      const same = await prepareExchange(bench);
      assert.equal((await postForm(same.tokenUrl, { ...same.exchange, redirect_uri: CALLBACK })).status, 200);
      const other = await prepareExchange(bench);
      const answer = await postForm(other.tokenUrl, { ...other.exchange, redirect_uri: `${CALLBACK}/` });
      assert.equal(answer.json.error, 'invalid_grant');
    },
  ],
  [
    'T18 one of 50 concurrent redemptions on two processes succeeds (§4.1.2)',
    async (bench) => {
      const { exchange } = await prepareExchange(bench);
      const servers = [bench.server, await bench.startAnother()];
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) => postForm(`${servers[i % 2]?.url}/oauth/token`, exchange)),
      );
      const statuses = answers.map((answer) => answer.status);
      assert.equal(statuses.filter((status) => status === 200).length, 1);
      assert.equal(statuses.filter((status) => status === 400).length, 49);
    },
  ],
  [
    'T19 a replay with valid credentials is invalid_grant and revokes every token issued from the code (§4.1.2)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepareExchange(bench);
      const first = (await postForm(tokenUrl, exchange)).json;
      const renewed = (await refresh(bench.server, String(first.refresh_token))).json;
      assert.equal((await postForm(tokenUrl, exchange)).json.error, 'invalid_grant');
      assert.equal(await callApi(bench.server, String(first.access_token)), 401);
      assert.equal(await callApi(bench.server, String(renewed.access_token)), 401);
      assert.equal((await refresh(bench.server, String(renewed.refresh_token))).json.error, 'invalid_grant');
    },
  ],
  [
    'T20 a replay with a wrong secret, verifier or redirect_uri revokes nothing',
    async (bench) => {
      const { exchange, tokenUrl } = await prepareExchange(bench);
      const { access_token: token } = (await postForm(tokenUrl, exchange)).json;
      assert.equal((await postForm(tokenUrl, { ...exchange, client_secret: 'wrong' })).status, 401);
      assert.equal((await postForm(tokenUrl, { ...exchange, code_verifier: 'v'.repeat(43) })).status, 400);
      assert.equal((await postForm(tokenUrl, { ...exchange, redirect_uri: 'https://evil.example/' })).status, 400);
      assert.equal(await callApi(bench.server, String(token)), 200);
    },
  ],
  [
    'T22 CVE-2026-9798 a person disabled after the consent gets invalid_grant, and tokens issued before stop',
    async (bench) => {
      const { exchange, tokenUrl, person, ...application } = await prepareExchange(bench);
      const { server } = bench;
      const earlier = await obtainTokens(server, person, application);
      await server.store.writeAll([disableUserStatement(person.user.id, server.world.nowMs())]);
      assert.equal((await postForm(tokenUrl, exchange)).json.error, 'invalid_grant');
      assert.equal((await refresh(server, earlier.refresh_token)).json.error, 'invalid_grant');
      assert.equal(await callApi(server, earlier.access_token), 401);
      await server.store.writeAll([enableUserStatement(person.user.id)]);
      assert.equal(await callApi(server, earlier.access_token), 200);
    },
  ],
  [
    'T23 a granted scope narrower than the asked one is returned (§5.1)',
    async (bench) => {
      const { exchange, tokenUrl } = await prepareExchange(bench, 'all_hook user_info projects');
      assert.equal((await postForm(tokenUrl, exchange)).json.scope, 'all_hook');
    },
  ],
];

checkConformance('authorization code', cases);
