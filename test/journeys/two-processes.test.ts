/**
 * Two processes of the service on one PostgreSQL: what only one of them may do, and what the other must see at once.
 * TRIVET_LONG=1 repeats each race until chance has had its turn.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { disableUserStatement, enableUserStatement } from '../../src/authorization/accounts/user-store.ts';
import { createPersonalToken, revokePersonalToken } from '../../src/authorization/tokens/personal-token.ts';
import { realWorld } from '../../src/world.ts';
import {
  type Answer,
  type AuthorizationEndpoint,
  callApi,
  createPerson,
  type Fields,
  obtainCode,
  obtainTokens,
  postForm,
  refresh,
  registerApplication,
  type SignedIn,
} from '../support/authorization/authorization-server.ts';
import { startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, findReasonToSkip, openTestStore } from '../support/store/engines.ts';

const ROUNDS = process.env.TRIVET_LONG === '1' ? 100 : 3;
const AT_ONCE = 50;
const skip = findReasonToSkip('postgres');

interface Pair {
  readonly one: AuthorizationEndpoint;
  readonly other: AuthorizationEndpoint;
  readonly person: SignedIn;
  readonly application: Awaited<ReturnType<typeof registerApplication>>;
}

async function withTwoProcesses(
  environment: Readonly<Record<string, string>>,
  run: (pair: Pair) => Promise<void>,
): Promise<void> {
  await using undo = new AsyncDisposableStack();
  const { dataDir, databaseUrl = '' } = await createStorePlace('postgres');
  undo.defer(() => rmSync(dataDir, { recursive: true, force: true }));
  const store = undo.use(await openTestStore({ dataDir, databaseUrl }));
  const shared = {
    DATABASE_URL: databaseUrl,
    SECRET_KEYS: Buffer.alloc(32, 7).toString('base64'),
    LOG_LEVEL: 'error',
    TRUSTED_PROXIES: '127.0.0.1',
    ...environment,
  };
  const programs = await Promise.all([startProgram(shared), startProgram(shared)]);
  for (const program of programs) undo.use(program);
  const [one, other] = programs.map(({ httpUrl: url }) => ({ url, store, world: realWorld }));
  assert.ok(one && other);
  await run({ one, other, person: await createPerson(one, 'ada'), application: await registerApplication(one) });
}

/** Each race comes from an address of its own: 49 refusals in each would reach the limit of wrong grants. */
function addressOf(round: number): Readonly<Record<string, string>> {
  return { 'x-forwarded-for': `192.0.2.${round + 1}` };
}

/** As many at once as there are, in turn to one process and to the other. */
function race({ one, other }: Pair, send: (at: AuthorizationEndpoint) => Promise<Answer>): Promise<Answer[]> {
  return Promise.all(Array.from({ length: AT_ONCE }, (_, index) => send(index % 2 === 0 ? one : other)));
}

function postToken({ url }: AuthorizationEndpoint, round: number, fields: Fields): Promise<Answer> {
  return postForm(`${url}/oauth/token`, fields, addressOf(round));
}

/** The one success among refusals of the given kind. */
function findOnlySuccess(answers: readonly Answer[]): Answer {
  const [success, ...others] = answers.filter(({ status }) => status === 200);
  assert.ok(success, 'one succeeded');
  assert.equal(others.length, 0, 'only one succeeded');
  for (const answer of answers)
    if (answer !== success) assert.deepEqual([answer.status, answer.json.error], [400, 'invalid_grant'], answer.text);
  return success;
}

test('T18 one of 50 concurrent redemptions on two operating system processes succeeds', { skip }, () =>
  withTwoProcesses({}, async (pair) => {
    const { clientId, clientSecret } = pair.application;
    for (let round = 0; round < ROUNDS; round += 1) {
      const code = await obtainCode(pair.one, pair.person, { client_id: clientId });
      const fields = { grant_type: 'authorization_code', code, client_id: clientId, client_secret: clientSecret };
      const success = findOnlySuccess(await race(pair, (at) => postToken(at, round, fields)));
      // The others came with the right credentials, so they were replays: T19 asks that these tokens be dead.
      assert.equal(await callApi(pair.other, String(success.json.access_token)), 401);
    }
  }),
);

test('R06 50 concurrent refreshes on two operating system processes bring the same successor to all', { skip }, () =>
  withTwoProcesses({}, async (pair) => {
    let { refresh_token: token } = await obtainTokens(pair.one, pair.person, pair.application);
    for (let round = 0; round < ROUNDS; round += 1) {
      const answers = await race(pair, (at) => refresh(at, token));
      for (const answer of answers) assert.equal(answer.status, 200, answer.text);
      assert.equal(new Set(answers.map(({ text }) => text)).size, 1, 'byte for byte the same');
      token = String(answers[0]?.json.refresh_token);
    }
    assert.equal((await refresh(pair.other, token)).status, 200, 'the last successor lives');
  }),
);

test('R06 without a grace one of 50 concurrent refreshes succeeds, and the family dies of the reuse', { skip }, () =>
  withTwoProcesses({ REFRESH_GRACE_SECONDS: '0' }, async (pair) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { refresh_token: token } = await obtainTokens(pair.one, pair.person, pair.application);
      const fields = { grant_type: 'refresh_token', refresh_token: token };
      const success = findOnlySuccess(await race(pair, (at) => postToken(at, round, fields)));
      const successor = { ...fields, refresh_token: String(success.json.refresh_token) };
      assert.equal((await postToken(pair.other, round, successor)).status, 400);
      assert.equal(await callApi(pair.one, String(success.json.access_token)), 401);
    }
  }),
);

test("B08 what one process revokes is refused on the other's very next call", { skip }, () =>
  withTwoProcesses({}, async (pair) => {
    const { one, other, person, application } = pair;
    const { store, world } = one;
    const client = { client_id: application.clientId, client_secret: application.clientSecret };
    for (let round = 0; round < ROUNDS * 10; round += 1) {
      const [from, to] = round % 2 === 0 ? [one, other] : [other, one];
      const tokens = await obtainTokens(one, person, application);
      // Seen on both before, so that whatever they remember is warm.
      assert.deepEqual([await callApi(from, tokens.access_token), await callApi(to, tokens.access_token)], [200, 200]);
      const token = round % 3 === 0 ? tokens.refresh_token : tokens.access_token;
      assert.equal((await postForm(`${from.url}/oauth/revoke`, { token, ...client })).status, 200);
      assert.equal(await callApi(to, tokens.access_token), 401);
      const introspected = await postForm(`${to.url}/oauth/introspect`, { token: tokens.access_token, ...client });
      assert.deepEqual(introspected.json, { active: false });
    }
    const { token, secret } = await createPersonalToken(store, world, {
      userId: person.user.id,
      name: 'personal',
      scopes: ['all_user'],
      expiresAtMs: undefined,
    });
    const { access_token: live } = await obtainTokens(one, person, application);
    assert.deepEqual(
      [await callApi(one, secret), await callApi(other, secret), await callApi(other, live)],
      [200, 200, 200],
    );
    await revokePersonalToken(store, world, { userId: person.user.id, tokenId: token.tokenId });
    assert.deepEqual([await callApi(one, secret), await callApi(other, secret)], [401, 401]);
    await store.writeAll([disableUserStatement(person.user.id, world.nowMs())]);
    assert.deepEqual([await callApi(one, live), await callApi(other, live)], [401, 401], 'a disabled person');
    await store.writeAll([enableUserStatement(person.user.id)]);
    assert.deepEqual([await callApi(one, live), await callApi(other, live)], [200, 200], 'and enabled again');
  }),
);
