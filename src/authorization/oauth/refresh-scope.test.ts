/** The scope of a refresh: RFC 6749 §6 and §3.3. */
import assert from 'node:assert/strict';
import { callApi, refresh, request } from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance, prepareTokens } from '../../../test/support/authorization/conformance.ts';

const cases: Case[] = [
  [
    'R09 names that the authorization request leaves out are left out of a refresh too (§3.3)',
    async (bench) => {
      const { server } = bench;
      for (const [asked, granted] of [
        ['all_hook user_info', 'all_hook'],
        ['all_user unknown_scope', 'all_user'],
        ['user_info unknown_scope', 'all_user'],
      ] as const) {
        const { tokens, ...application } = await prepareTokens(bench, asked);
        assert.equal(tokens.scope, granted);
        const client = { client_id: application.clientId, client_secret: application.clientSecret };
        const answer = await refresh(server, tokens.refresh_token, { ...client, scope: asked });
        assert.deepEqual([answer.status, answer.json.scope], [200, granted], answer.text);
        const again = await refresh(server, tokens.refresh_token, { ...client, scope: asked });
        assert.equal(again.text, answer.text, 'a repetition too');
      }
    },
  ],
  [
    'R09 names that a client is configured with, and that were unknown or not offered at the sign-in, are left out',
    async (bench) => {
      const { server } = bench;
      for (const [granted, asked, given] of [
        ['all_user openid', 'openid all_user profile email', 'all_user openid'],
        ['openid', 'openid read_user', 'openid'],
        ['all_user', 'all_user admin models:write', 'all_user'],
      ] as const) {
        const { tokens } = await prepareTokens(bench, granted);
        const answer = await refresh(server, tokens.refresh_token, { scope: asked });
        assert.deepEqual([answer.status, answer.json.scope], [200, given], answer.text);
        assert.equal((await refresh(server, tokens.refresh_token, { scope: asked })).text, answer.text);
        const next = await refresh(server, String(answer.json.refresh_token));
        assert.equal(next.json.scope, granted, 'omitted means the original');
      }
    },
  ],
  [
    'R09 a narrow scope is given where a granted one allows the same',
    async (bench) => {
      const { server } = bench;
      const { tokens } = await prepareTokens(bench, 'openid all_user all_hook');
      const answer = await refresh(server, tokens.refresh_token, { scope: 'openid profile events:write' });
      assert.equal(answer.json.scope, 'openid profile events:write', answer.text);
      const token = String(answer.json.access_token);
      assert.equal(await callApi(server, token), 403);
      const userinfo = await request(`${server.url}/oauth/userinfo`, { headers: { authorization: `Bearer ${token}` } });
      assert.deepEqual(Object.keys(userinfo.json), ['sub', 'name', 'preferred_username']);
    },
  ],
  [
    'R09 a refresh for nothing that was granted is invalid_scope, and so is one for a scope that was not requested',
    async (bench) => {
      const { tokens } = await prepareTokens(bench, 'all_hook');
      const nothing = ['admin', 'user_info', 'profile email'];
      const more = ['all_hook openid', 'all_hook all_pr', 'predict all_key'];
      for (const scope of [...nothing, ...more]) {
        const { status, json } = await refresh(bench.server, tokens.refresh_token, { scope });
        assert.deepEqual([status, json.error], [400, 'invalid_scope'], scope);
      }
      assert.equal((await refresh(bench.server, tokens.refresh_token)).status, 200, 'the token was not consumed');
    },
  ],
];

checkConformance('scope of a refresh', cases);
