/** A grace of refreshes that is longer than the lifetime of access tokens. */
import assert from 'node:assert/strict';
import { callApi, refresh } from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance, prepareTokens } from '../../../test/support/authorization/conformance.ts';
import { sweepEnded } from '../maintenance/retention-store.ts';

const cases: Case[] = [
  [
    'an answer is repeated byte for byte when its access token has expired and was deleted, and the session goes on',
    async (bench) => {
      const { server } = bench;
      for (const scope of [{}, { scope: 'all_hook' }, { scope: 'all_hook profile admin' }]) {
        const { tokens } = await prepareTokens(bench);
        const first = await refresh(server, tokens.refresh_token, scope);
        server.advance(61_000);
        assert.equal(await callApi(server, String(first.json.access_token)), 401);
        const second = await refresh(server, tokens.refresh_token, scope);
        assert.deepEqual([second.status, second.text], [200, first.text]);
        await sweepEnded(server.store, { nowMs: server.world.nowMs(), auditDays: 1 });
        const third = await refresh(server, tokens.refresh_token, scope);
        assert.deepEqual([third.status, third.text], [200, first.text]);
        const next = await refresh(server, String(third.json.refresh_token));
        assert.equal(next.status, 200, next.text);
        assert.equal(await callApi(server, String(next.json.access_token)), 200);
      }
    },
  ],
];

checkConformance('a grace longer than an access token', cases, {
  environment: { ACCESS_TOKEN_SECONDS: '60', REFRESH_GRACE_SECONDS: '600' },
  isStill: true,
});
