import assert from 'node:assert/strict';
import { callApi, obtainTokens, postForm, refresh } from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance, prepareTokens } from '../../../test/support/authorization/conformance.ts';
import { giveSecondStep } from '../../../test/support/authorization/second-step.ts';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { createSecret } from '../accounts/secret-text.ts';
import { createSession } from '../accounts/session-store.ts';
import { resetPassword, resetSecondStep } from '../administration/manage-people.ts';
import { createPersonalToken } from './personal-token.ts';

/** The counts by event and kind. */
async function readCounts(url: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const series = [...text.matchAll(/^trivet_tokens_total\{event="(\w+)",kind="(\w+)"(?:,reason="(\w+)")?\} (\d+)$/gm)];
  assert.equal(series.length, 23, 'each series is there from the start');
  const counts = series.map(
    ([, event, kind, reason, count]) => [`${event} ${kind}${reason ? ` ${reason}` : ''}`, Number(count)] as const,
  );
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
  [
    'counts what ends with a consent, a reset second step and a new password, by reason',
    async ({ server }) => {
      const { person, ...application } = await prepareTokens({ server });
      const { clientId } = application;
      const { user } = person;
      const { store, world } = server;
      const { token } = await createSession(store, world, { user, method: 'password', address: '-', userAgent: '' });
      const browser = createFormClient(server.url, new Map([['trivet_session', token]]));
      const page = '/account/authorizations';
      await obtainTokens(server, person, application);
      assert.equal(
        (await browser.submit(page, `${page}/revoke`, { client_id: clientId })).location,
        `${page}?done=revoked`,
      );
      assert.equal((await readCounts(server.url))['ended refresh_token consent'], 2);

      await createPersonalToken(store, world, {
        userId: user.id,
        name: 'ci',
        scopes: ['all_user'],
        expiresAtMs: undefined,
      });
      const ended: unknown[] = [];
      const dependencies = { store, world, countToken: (...counted: unknown[]) => void ended.push(counted) };

      await obtainTokens(server, person, application);
      await giveSecondStep(store, user.login);
      await resetSecondStep(dependencies, COMMAND_LINE, user.login);
      for (const deleteTokens of [false, true])
        await resetPassword(dependencies, COMMAND_LINE, {
          login: user.login,
          password: 'a new long password',
          deleteTokens,
        });
      assert.deepEqual(ended, [
        ['ended', 'refresh_token', { reason: 'second_step', count: 1 }],
        ['ended', 'personal', { reason: 'second_step', count: 0 }],
        ['ended', 'refresh_token', { reason: 'password', count: 0 }],
        ['ended', 'personal', { reason: 'password', count: 0 }],
        ['ended', 'refresh_token', { reason: 'password', count: 0 }],
        ['ended', 'personal', { reason: 'password', count: 1 }],
      ]);
    },
  ],
];

checkConformance('tokens in the metrics', cases);
