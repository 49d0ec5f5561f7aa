/** Refresh: RFC 6749 §6, rotation of RFC 9700 §4.14, and the refresh without a client, as GitCode's clients send it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  basic,
  callApi,
  createPerson,
  obtainTokens,
  refresh,
  registerApplication,
} from '../../../test/support/authorization/authorization-server.ts';
import {
  type Bench,
  type Case,
  checkConformance,
  prepareTokens,
} from '../../../test/support/authorization/conformance.ts';
import { realWorld } from '../../world.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { setPasswordStatement } from '../accounts/password-store.ts';
import { createSecret, hashSecret, isSecretOf } from '../accounts/secret-text.ts';
import { disableUserStatement } from '../accounts/user-store.ts';
import { deleteApplication, setApplicationDisabled } from '../applications/application.ts';
import { updateApplicationStatement } from '../applications/application-store.ts';
import { createSuccessorSeed, deriveSuccessor } from '../tokens/issue-tokens.ts';
import { rotateRefresh } from '../tokens/rotation-store.ts';
import { revokeConsent } from './protocol/consent-store.ts';

const DAY_MS = 86_400_000;

async function renew({ server }: Bench, token: unknown): Promise<{ access: string; refresh: string }> {
  const answer = await refresh(server, String(token));
  assert.equal(answer.status, 200, answer.text);
  return { access: String(answer.json.access_token), refresh: String(answer.json.refresh_token) };
}

function assertRefused(answer: Answer): void {
  assert.deepEqual([answer.status, answer.json.error], [400, 'invalid_grant']);
}

const cases: Case[] = [
  [
    'R01 grant_type and refresh_token alone are enough (contract), in the query too',
    async (bench) => {
      const { tokens } = await prepareTokens(bench);
      const query = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token });
      const response = await fetch(`${bench.server.url}/oauth/token?${query.toString()}`, { method: 'POST' });
      assert.equal(response.status, 200);
      const body = (await response.json()) as Record<string, unknown>;
      assert.deepEqual(Object.keys(body).sort(), Object.keys(tokens).sort());
      assert.equal(body.scope, tokens.scope);
      assert.equal(body.expires_in, 1_296_000);
    },
  ],
  [
    'R02 credentials that are sent are checked before the token is touched (§6)',
    async (bench) => {
      const { tokens, clientId, clientSecret } = await prepareTokens(bench);
      const { server } = bench;
      const stranger = await registerApplication(server);
      const wrong = await refresh(server, tokens.refresh_token, { client_id: clientId, client_secret: 'wrong' });
      assert.deepEqual([wrong.status, wrong.json.error], [401, 'invalid_client']);
      const foreign = { client_id: stranger.clientId, client_secret: stranger.clientSecret };
      assertRefused(await refresh(server, tokens.refresh_token, foreign));
      assertRefused(await refresh(server, tokens.refresh_token, { client_id: stranger.clientId }));
      const right = await refresh(server, tokens.refresh_token, { client_id: clientId, client_secret: clientSecret });
      assert.equal(right.status, 200, 'the token was not consumed');
    },
  ],
  [
    'R02 an application that lost the grant refresh_token refreshes no more, with its client_id and without (§6)',
    async (bench) => {
      const { server } = bench;
      const { tokens, application } = await prepareTokens(bench);
      const without = { ...application, grantTypes: ['authorization_code'] as const };
      await server.store.writeAll([updateApplicationStatement(without)]);
      for (const client of [{}, { client_id: application.clientId }]) {
        const answer = await refresh(server, tokens.refresh_token, client);
        assert.deepEqual([answer.status, answer.json.error], [400, 'unauthorized_client']);
      }
      await server.store.writeAll([updateApplicationStatement(application)]);
      assert.equal((await refresh(server, tokens.refresh_token)).status, 200, 'the token was not consumed');
    },
  ],
  [
    'R02 an application may demand client authentication for every refresh',
    async (bench) => {
      const { server } = bench;
      const person = await createPerson(server);
      const application = await registerApplication(server, { authenticatedRefresh: true });
      const tokens = await obtainTokens(server, person, application);
      const bare = await refresh(server, tokens.refresh_token);
      assert.deepEqual([bare.status, bare.json.error], [401, 'invalid_client']);
      const response = await fetch(`${server.url}/oauth/token`, {
        method: 'POST',
        headers: basic(application.clientId, application.clientSecret),
        body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token }),
      });
      assert.equal(response.status, 200);
    },
  ],
  [
    'R03 every refresh makes a new refresh token with the same scope; after the grace the old one is dead',
    async (bench) => {
      const { tokens } = await prepareTokens(bench);
      const answer = await refresh(bench.server, tokens.refresh_token);
      assert.notEqual(answer.json.refresh_token, tokens.refresh_token);
      assert.equal(answer.json.scope, tokens.scope);
      assert.equal(await callApi(bench.server, String(answer.json.access_token)), 200);
      bench.server.advance(31_000);
      assertRefused(await refresh(bench.server, tokens.refresh_token));
    },
  ],
  [
    'R04 a repetition within the grace answers byte for byte the same, on another process too',
    async (bench) => {
      const { tokens } = await prepareTokens(bench);
      const first = await refresh(bench.server, tokens.refresh_token);
      bench.server.advance(29_000);
      const second = await refresh(await bench.startAnother(), tokens.refresh_token);
      assert.equal(second.status, 200, second.text);
      assert.equal(second.text, first.text);
      await renew(bench, second.json.refresh_token);
    },
  ],
  [
    'R05 reuse after the grace kills the whole family and is recorded (RFC 9700 §4.14.2)',
    async (bench) => {
      const { tokens, person, clientId } = await prepareTokens(bench);
      const { server } = bench;
      const next = await renew(bench, tokens.refresh_token);
      server.advance(31_000);
      assertRefused(await refresh(server, tokens.refresh_token));
      assertRefused(await refresh(server, next.refresh));
      assert.equal(await callApi(server, next.access), 401);
      assert.equal(await callApi(server, tokens.access_token), 401);
      const events = await listEvents(server.store, { userId: person.user.id, limit: 10 });
      assert.ok(events.some((event) => event.kind === 'refresh_reused' && event.clientId === clientId));
    },
  ],
  [
    'R05 with a grace of nothing a repetition within the same millisecond is reuse',
    async (bench) => {
      const { tokens } = await prepareTokens(bench);
      const nowMs = realWorld.nowMs();
      const rotate = () => {
        const successorSeed = createSuccessorSeed(realWorld);
        const pair = deriveSuccessor(tokens.refresh_token, successorSeed);
        return bench.server.store.call(rotateRefresh, {
          tokenHash: hashSecret(tokens.refresh_token),
          nowMs,
          graceMs: 0,
          clientId: undefined,
          isAuthenticated: false,
          askedScope: undefined,
          access: { hash: hashSecret(pair.accessToken), expiresAtMs: nowMs + DAY_MS },
          refresh: { hash: hashSecret(pair.refreshToken), expiresAtMs: nowMs + DAY_MS },
          successorSeed,
          address: undefined,
        });
      };
      assert.deepEqual([(await rotate()).kind, (await rotate()).kind], ['rotated', 'refused']);
    },
  ],
  [
    'R06 CVE-2026-1035 50 concurrent refreshes on two processes make one successor',
    async (bench) => {
      const { tokens } = await prepareTokens(bench);
      const servers = [bench.server, await bench.startAnother()];
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) => refresh(servers[i % 2] ?? bench.server, tokens.refresh_token)),
      );
      for (const answer of answers) assert.equal(answer.status, 200, answer.text);
      const successors = new Set(answers.map((answer) => answer.text));
      assert.equal(successors.size, 1);
      await renew(bench, answers[0]?.json.refresh_token);
    },
  ],
  [
    'R07 after five rotations within one second every older token is known as reused',
    async (bench) => {
      for (const replayed of [0, 1, 2, 3]) {
        const { tokens } = await prepareTokens(bench);
        const generations = [tokens.refresh_token];
        for (let round = 0; round < 5; round++) generations.push((await renew(bench, generations.at(-1))).refresh);
        assertRefused(await refresh(bench.server, generations[replayed] ?? ''));
        assertRefused(await refresh(bench.server, generations.at(-1) ?? ''));
      }
    },
  ],
  [
    'R08 CVE-2026-9802 a fresh process knows what was rotated before it started',
    async (bench) => {
      const { tokens } = await prepareTokens(bench);
      const next = await renew(bench, tokens.refresh_token);
      bench.server.advance(31_000);
      const fresh = await bench.startAnother();
      assertRefused(await refresh(fresh, tokens.refresh_token));
      assertRefused(await refresh(fresh, next.refresh));
    },
  ],
  [
    'R09 a narrower scope is honoured for the access token, a wider one is invalid_scope (§6)',
    async (bench) => {
      const { server } = bench;
      const { tokens } = await prepareTokens(bench);
      const narrow = await refresh(server, tokens.refresh_token, { scope: 'all_hook' });
      assert.equal(narrow.json.scope, 'all_hook');
      assert.equal(await callApi(server, String(narrow.json.access_token)), 403);
      const next = String(narrow.json.refresh_token);
      for (const scope of ['all_user all_pr', 'all_pr unknown_scope', 'unknown_scope', ' '])
        assert.equal((await refresh(server, next, { scope })).json.error, 'invalid_scope');
      assert.equal((await refresh(server, next)).json.scope, tokens.scope, 'omitted means the original');
    },
  ],
  [
    'R10 expired, revoked, unknown and garbled tokens get one and the same answer',
    async (bench) => {
      const { server } = bench;
      const [expired, revoked] = [await prepareTokens(bench), await prepareTokens(bench)];
      const nowMs = server.world.nowMs();
      const revocation = { userId: revoked.person.user.id, clientId: revoked.clientId, nowMs };
      await revokeConsent(server.store, revocation);
      const unknown = createSecret('refresh', server.world);
      const before = [revoked.tokens.refresh_token, unknown, 'garbage', `${unknown.slice(0, -1)}!`];
      const answers = await Promise.all(before.map((token) => refresh(server, token)));
      server.advance(91 * DAY_MS);
      answers.push(await refresh(server, expired.tokens.refresh_token));
      for (const answer of answers) assertRefused(answer);
      assert.equal(new Set(answers.map((answer) => answer.text)).size, 1);
    },
  ],
  [
    'R11 a disabled or deleted application, a revoked consent, a disabled person and a changed password end the refresh',
    async (bench) => {
      const { server } = bench;
      const { store, world } = server;
      const actor = { userId: undefined };
      const enders: ((prepared: Awaited<ReturnType<typeof prepareTokens>>) => Promise<unknown>)[] = [
        ({ application }) => setApplicationDisabled(store, world, { application, isDisabled: true, actor }),
        ({ application }) => deleteApplication(store, world, { application, actor }),
        ({ person, clientId }) => revokeConsent(store, { userId: person.user.id, clientId, nowMs: world.nowMs() }),
        ({ person }) => store.writeAll([disableUserStatement(person.user.id, world.nowMs())]),
        ({ person }) => store.writeAll([setPasswordStatement(person.user.id, 'hash', world.nowMs() + 1)]),
      ];
      for (const end of enders) {
        const prepared = await prepareTokens(bench);
        await end(prepared);
        assertRefused(await refresh(server, prepared.tokens.refresh_token));
      }
    },
  ],
  [
    'R13 a family ends 90 days after its last use and a year after its beginning',
    async (bench) => {
      const { server } = bench;
      const idle = await prepareTokens(bench);
      const busy = await prepareTokens(bench);
      let token = busy.tokens.refresh_token;
      for (let month = 0; month < 4; month++) {
        server.advance(89 * DAY_MS);
        token = (await renew(bench, token)).refresh;
        if (month === 1) assertRefused(await refresh(server, idle.tokens.refresh_token));
      }
      server.advance(10 * DAY_MS);
      assertRefused(await refresh(server, token));
    },
  ],
  [
    'S14 a clock put back revives no token and stretches no grace',
    async (bench) => {
      const { server } = bench;
      const { tokens } = await prepareTokens(bench);
      const next = await renew(bench, tokens.refresh_token);
      server.advance(1_296_001_000);
      assert.equal(await callApi(server, next.access), 401);
      server.stepClock(-3_600_000);
      assert.equal(await callApi(server, next.access), 401);
      server.stepClock(-1_296_001_000);
      const fresh = await bench.startAnother();
      assertRefused(await refresh(fresh, tokens.refresh_token));
    },
  ],
];

checkConformance('refresh', cases);

test('S08 a successor follows from the old token and the seed together, from neither alone', () => {
  const [seed, old] = [createSuccessorSeed(realWorld), createSecret('refresh', realWorld)];
  const pair = deriveSuccessor(old, seed);
  assert.deepEqual(deriveSuccessor(old, seed), pair);
  assert.ok(isSecretOf('access', pair.accessToken) && isSecretOf('refresh', pair.refreshToken));
  const others = [
    deriveSuccessor(createSecret('refresh', realWorld), seed),
    deriveSuccessor(old, createSuccessorSeed(realWorld)),
  ];
  const tokens = [pair, ...others].flatMap(({ accessToken, refreshToken }) => [accessToken, refreshToken]);
  const bodies = tokens.map((token) => token.slice('tvt_x_'.length, 'tvt_x_'.length + 43));
  assert.equal(new Set(bodies).size, 6, 'the two tokens of a pair have nothing in common either');
});
