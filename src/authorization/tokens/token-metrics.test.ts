import assert from 'node:assert/strict';
import { callApi, postForm, refresh } from '../../../test/support/authorization-server.ts';
import { type Case, checkConformance, prepareTokens } from '../../../test/support/conformance.ts';
import { createSecret } from '../accounts/secret-text.ts';

/** Of each event and kind that was counted. */
async function readCounts(url: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const series = [...text.matchAll(/^trivet_tokens_total\{event="(\w+)",kind="(\w+)"\} (\d+)$/gm)];
  assert.equal(series.length, 15, 'each series is there from the start');
  const counts = series.map(([, event, kind, count]) => [`${event} ${kind}`, Number(count)] as const);
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

const cases: Case[] = [
  [
    'counts what is issued, refreshed, revoked and refused, by kind',
    async ({ server }) => {
      const { tokens, credentials } = await prepareTokens({ server });
      assert.deepEqual(await readCounts(server.url), { 'issued authorization_code': 1 });
      await refresh(server, tokens.refresh_token);
      await refresh(server, createSecret('refresh', server.world));
      for (let count = 0; count < 2; count += 1)
        await postForm(`${server.url}/oauth/revoke`, { token: tokens.access_token }, credentials);
      for (const token of [tokens.access_token, createSecret('personal', server.world), 'garbage'])
        assert.equal(await callApi(server, token), 401);
      assert.equal((await postForm(`${server.url}/oauth/token`, { grant_type: 'password' }, credentials)).status, 400);
      assert.deepEqual(await readCounts(server.url), {
        'issued authorization_code': 1,
        'refreshed refresh_token': 1,
        'revoked access': 1,
        'refused refresh_token': 1,
        'refused access': 1,
        'refused personal': 1,
        'refused other': 2,
      });
    },
  ],
];

checkConformance('tokens in the metrics', cases);
