/** The scope of a refresh: RFC 6749 §6 and §3.3. */
import assert from 'node:assert/strict';
import { refresh } from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance, prepareTokens } from '../../../test/support/authorization/conformance.ts';

const cases: Case[] = [
  [
    'R09 names that the authorization request leaves out are left out of a refresh too (§3.3)',
    async (bench) => {
      const { server } = bench;
      for (const [asked, granted] of [
        ['all_hook user_info', 'all_hook'],
        ['all_user nobody_knows', 'all_user'],
        ['user_info nobody_knows', 'all_user'],
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
];

checkConformance('scope of a refresh', cases);
