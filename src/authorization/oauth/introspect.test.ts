/** Introspection: RFC 7662. */
import assert from 'node:assert/strict';
import {
  basic,
  postForm,
  refresh,
  registerApplication,
  request,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance, prepareTokens } from '../../../test/support/authorization/conformance.ts';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { statement } from '../../database/store.ts';
import { realWorld } from '../../world.ts';
import { createSecret, hashSecret } from '../accounts/secret-text.ts';
import { disableUserStatement } from '../accounts/user-store.ts';
import { setIntrospectionStatement } from '../applications/application-store.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';
import { findPersonalToken } from '../tokens/personal-token-store.ts';

const DAY_MS = 86_400_000;
const INACTIVE = '{"active":false}';

const cases: Case[] = [
  [
    'I01 I05 without authentication 401, for a client and for a bearer; GET is 405 (RFC 7662 §2.1)',
    async (bench) => {
      const url = `${bench.server.url}/oauth/introspect`;
      const { tokens, clientId } = await prepareTokens(bench);
      const fields = { token: tokens.access_token };
      assert.equal((await postForm(url, fields)).status, 401);
      assert.equal((await postForm(url, fields, basic(clientId, 'wrong'))).status, 401);
      assert.equal((await postForm(url, { ...fields, client_id: clientId })).status, 401);
      const bad = await postForm(url, fields, { authorization: 'Bearer x' });
      assert.equal(bad.status, 401);
      assert.match(bad.headers.get('www-authenticate') ?? '', /^Bearer /);
      assert.equal((await request(url)).status, 405);
      const own = await postForm(url, fields, { authorization: `Bearer ${tokens.access_token}` });
      assert.equal(own.json.active, true);
    },
  ],
  [
    'I02 I06 a live access token is described, and the answer is not to be stored (§2.2)',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials, clientId, person } = await prepareTokens(bench);
      const answer = await postForm(`${server.url}/oauth/introspect`, { token: tokens.access_token }, credentials);
      const { exp, iat, ...rest } = answer.json;
      assert.deepEqual(rest, {
        active: true,
        scope: 'all_user all_hook',
        client_id: clientId,
        username: person.user.login,
        token_type: 'Bearer',
        sub: person.user.id,
        iss: server.url,
      });
      assert.equal(Number(exp) - Number(iat), 1_296_000);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
    },
  ],
  [
    'I03 I07 I08 unknown, expired, revoked, foreign, garbled tokens and those of a disabled person are exactly {"active":false} (§2.2)',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials, person } = await prepareTokens(bench);
      const foreign = await prepareTokens(bench);
      const ask = async (token: string) =>
        (await postForm(`${server.url}/oauth/introspect`, { token }, credentials)).text;
      for (const token of [
        createSecret('access', realWorld),
        'x',
        foreign.tokens.access_token,
        foreign.tokens.refresh_token,
      ])
        assert.equal(await ask(token), INACTIVE);
      await server.store.writeAll([disableUserStatement(person.user.id, server.world.nowMs())]);
      assert.equal(await ask(tokens.access_token), INACTIVE);
      assert.equal(await ask(tokens.refresh_token), INACTIVE);
    },
  ],
  [
    'I04 a refresh token is described by its own state, without token_type (§2.2)',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials } = await prepareTokens(bench);
      const ask = async (token: string) =>
        (await postForm(`${server.url}/oauth/introspect`, { token }, credentials)).json;
      const described = await ask(tokens.refresh_token);
      assert.deepEqual([described.active, described.token_type], [true, undefined]);
      assert.equal(Number(described.exp) - Number(described.iat), 90 * 86_400);
      await refresh(server, tokens.refresh_token);
      assert.deepEqual(await ask(tokens.refresh_token), { active: false });
    },
  ],
  [
    'I07 an application with the role of a resource server sees the tokens of others, personal ones too',
    async (bench) => {
      const { server } = bench;
      const { tokens, person } = await prepareTokens(bench);
      const resource = await registerApplication(server);
      await server.store.writeAll([setIntrospectionStatement(resource.clientId, 1)]);
      const { secret } = await createPersonalToken(server.store, server.world, {
        userId: person.user.id,
        name: 'x',
        scopes: ['all_hook'],
        expiresAtMs: undefined,
      });
      const credentials = basic(resource.clientId, resource.clientSecret);
      for (const token of [tokens.access_token, secret]) {
        const { json } = await postForm(`${server.url}/oauth/introspect`, { token }, credentials);
        assert.deepEqual([json.active, json.sub], [true, person.user.id]);
      }
    },
  ],
  [
    'I07 a personal token that a resource server asks about counts as used',
    async (bench) => {
      const { server } = bench;
      const { person } = await prepareTokens(bench);
      const resource = await registerApplication(server);
      await server.store.writeAll([setIntrospectionStatement(resource.clientId, 1)]);
      const { secret, token } = await createPersonalToken(server.store, server.world, {
        userId: person.user.id,
        name: 'x',
        scopes: ['all_hook'],
        expiresAtMs: undefined,
      });
      const credentials = basic(resource.clientId, resource.clientSecret);
      await postForm(`${server.url}/oauth/introspect`, { token: secret }, credentials);
      const usedAtMs = await waitUntil(
        async () => (await findPersonalToken(server.store, person.user.id, token.tokenId))?.lastUsedAtMs,
      );
      assert.ok(Math.abs(usedAtMs - server.world.nowMs()) < 60_000);
    },
  ],
  [
    'I07 a personal token that is limited to repositories is described with them, since a scope alone would say more',
    async (bench) => {
      const { server } = bench;
      const { person } = await prepareTokens(bench);
      const resource = await registerApplication(server);
      await server.store.writeAll([setIntrospectionStatement(resource.clientId, 1)]);
      const { secret } = await createPersonalToken(server.store, server.world, {
        userId: person.user.id,
        name: 'x',
        scopes: ['all_hook'],
        repositories: ['Acme/Site'],
        expiresAtMs: undefined,
      });
      const credentials = basic(resource.clientId, resource.clientSecret);
      const { json } = await postForm(`${server.url}/oauth/introspect`, { token: secret }, credentials);
      assert.deepEqual([json.scope, json.repositories], ['all_hook', ['acme/site']]);
    },
  ],
];

checkConformance('introspection', cases);

const keepRefreshSql = statement(
  'test-keep-refresh-token',
  'UPDATE refresh_tokens SET expires_at_ms = $2 WHERE token_hash = $1',
);

const ofEnd: Case[] = [
  [
    'I04 a refresh token is described as ending with its sign-in, like each that follows it and each of an earlier release',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials } = await prepareTokens(bench);
      const ask = async (token: string) =>
        (await postForm(`${server.url}/oauth/introspect`, { token }, credentials)).json;
      const { exp } = await ask(tokens.refresh_token);
      const late = server.world.nowMs() + 90 * DAY_MS;
      await server.store.write(keepRefreshSql, [hashSecret(tokens.refresh_token), late]);
      assert.equal((await ask(tokens.refresh_token)).exp, exp, 'of an earlier release');
      server.advance(DAY_MS / 2);
      const next = String((await refresh(server, tokens.refresh_token)).json.refresh_token);
      assert.equal((await ask(next)).exp, exp);
      server.advance(DAY_MS / 2);
      assert.equal((await refresh(server, next)).status, 400);
      assert.deepEqual(await ask(next), { active: false });
    },
  ],
  [
    'I04 a refresh token that no refresh accepts any more is not active',
    async (bench) => {
      const { server } = bench;
      const { tokens, credentials } = await prepareTokens(bench);
      server.advance(DAY_MS);
      const { json } = await postForm(`${server.url}/oauth/introspect`, { token: tokens.refresh_token }, credentials);
      assert.deepEqual([json, (await refresh(server, tokens.refresh_token)).status], [{ active: false }, 400]);
    },
  ],
];

checkConformance('introspection of refresh tokens that end early', ofEnd, {
  environment: { REFRESH_MAX_DAYS: '1', REFRESH_IDLE_DAYS: '90' },
  isStill: true,
});
