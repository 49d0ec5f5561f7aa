/** One client can add only a bounded number of rows to the database, however many tokens it requests. */
import assert from 'node:assert/strict';
import {
  type AuthorizationServer,
  callApi,
  createPerson,
  obtainTokens,
  postForm,
  refresh,
  registerApplication,
  startAuthorizationServer,
} from '../../../test/support/authorization/authorization-server.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { type Store, statement } from '../../database/store.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { ISSUES_AN_HOUR } from './issue-log.ts';
import {
  ACCESS_TOKENS_KEPT,
  deleteSurplusOwnTokensStatements,
  MAX_FAMILIES,
  MAX_OWN_TOKENS,
} from './surplus-tokens-store.ts';
import { insertFamilyStatements, type PersonOrigin } from './token-store.ts';

const countRowsSql = statement<{ families: number; refresh: number; access: number }>(
  'test-count-token-rows',
  `SELECT (SELECT COUNT(*) FROM token_families) AS families, (SELECT COUNT(*) FROM refresh_tokens) AS refresh,
     (SELECT COUNT(*) FROM access_tokens) AS access`,
);
const originSql = statement<{ user_id: string; user_epoch: number; grant_id: string }>(
  'test-family-origin',
  'SELECT user_id, user_epoch, grant_id FROM token_families',
);

const familiesSql = statement<{ family_id: string }>(
  'test-families-made-at',
  'SELECT family_id FROM token_families WHERE created_at_ms = $1',
);

async function countRows(store: Store) {
  const [rows] = await store.read(countRowsSql);
  assert.ok(rows);
  return rows;
}

/** One of sixteen calls deletes. The probability that none of 600 calls does is below 10^-16. */
const TRIES = 600;

async function callUntil(isDone: () => Promise<boolean>, call: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    if (await isDone()) return;
    await call();
  }
  assert.fail(`not after ${TRIES} calls`);
}

interface Insertion {
  readonly clientId: string;
  readonly person: PersonOrigin | undefined;
  readonly count: number;
  /** An hour ago unless given. */
  readonly madeAtMs?: number;
}

/** Families that are older than any that the test creates, unless `madeAtMs` is later. */
async function insertOldFamilies({ store, world }: AuthorizationServer, insertion: Insertion): Promise<void> {
  const { clientId, person, count, madeAtMs: nowMs = world.nowMs() - 3_600_000 } = insertion;
  const expiresAtMs = world.nowMs() + 86_400_000;
  const token = () => ({ hash: world.randomBytes(32), expiresAtMs });
  for (let made = 0; made < count; made += 250)
    await store.writeAll(
      Array.from({ length: Math.min(250, count - made) }).flatMap(() =>
        insertFamilyStatements(
          { familyId: world.uuid(), clientId, person, scope: 'all_user', authTimeMs: nowMs, nowMs, expiresAtMs },
          { access: token(), refresh: person && token() },
        ),
      ),
    );
}

forEachEngine('a family that is refreshed without end keeps a bounded number of access tokens', async (store) => {
  await using server = await startAuthorizationServer(store, { isStill: true });
  const person = await createPerson(server);
  let tokens = await obtainTokens(server, person, await registerApplication(server));
  const recent: (typeof tokens)[] = [];
  for (let count = 0; count < 3 * ACCESS_TOKENS_KEPT; count += 1) {
    server.advance(1000);
    recent.unshift(tokens);
    tokens = (await refresh(server, tokens.refresh_token)).json as unknown as typeof tokens;
    const { access } = await countRows(store);
    assert.ok(access <= 2 * ACCESS_TOKENS_KEPT + 1, String(access));
  }
  for (const { access_token: token } of [tokens, ...recent.slice(0, 60)])
    assert.equal(await callApi(server, token), 200);
});

/** The owner of a stolen token can end it, even if the thief refreshed it many times. */
const defences = ['refresh', 'revoke'] as const;
for (const defence of defences)
  forEachEngine(
    `a used refresh token is never forgotten: to ${defence} it ends what a thief made of it`,
    async (store) => {
      await using server = await startAuthorizationServer(store, { isStill: true });
      const { clientId, clientSecret } = await registerApplication(server);
      const stolen = await obtainTokens(server, await createPerson(server), { clientId, clientSecret });
      let tokens = stolen;
      const secret = { client_id: clientId, client_secret: clientSecret };
      for (let count = 0; count < 2 * ACCESS_TOKENS_KEPT; count += 1) {
        server.advance(1000);
        const fields = count % 2 === 0 ? {} : secret;
        tokens = (await refresh(server, tokens.refresh_token, fields)).json as unknown as typeof tokens;
      }
      assert.equal(await callApi(server, tokens.access_token), 200);
      if (defence === 'refresh')
        assert.equal((await refresh(server, stolen.refresh_token)).json.error, 'invalid_grant');
      else await postForm(`${server.url}/oauth/revoke`, { token: stolen.refresh_token, ...secret });
      assert.equal(await callApi(server, tokens.access_token), 401);
      assert.equal((await refresh(server, tokens.refresh_token)).json.error, 'invalid_grant');
    },
  );

forEachEngine('a person has 100 sign-ins with one application; the one refreshed longest ago ends', async (store) => {
  await using server = await startAuthorizationServer(store);
  const person = await createPerson(server);
  const application = await registerApplication(server);
  const first = await obtainTokens(server, person, application);
  const other = await obtainTokens(server, await createPerson(server), application);
  const origins = await store.read(originSql);
  const { user_epoch: credentialGeneration, grant_id: consentId } = origins.find(
    (row) => row.user_id === person.user.id,
  )!;
  const origin = { userId: person.user.id, credentialGeneration, consentId };
  await insertOldFamilies(server, { clientId: application.clientId, person: origin, count: MAX_FAMILIES + 50 });
  const isBounded = async () => (await countRows(store)).families <= MAX_FAMILIES + 1;
  const made: (typeof first)[] = [];
  await callUntil(isBounded, async () => made.push(await obtainTokens(server, person, application)));
  const rows = await countRows(store);
  assert.deepEqual([rows.families, rows.refresh, rows.access], [101, 101, 101]);
  for (const { access_token: token } of [other, ...made.slice(-50)]) assert.equal(await callApi(server, token), 200);
  if (made.length < MAX_FAMILIES) assert.equal(await callApi(server, first.access_token), 200);
});

forEachEngine('an application has 10,000 tokens of its own, the latest ones', async (store) => {
  await using server = await startAuthorizationServer(store);
  const application = await registerApplication(server, { grantTypes: ['client_credentials'] });
  const { clientId, clientSecret } = application;
  await insertOldFamilies(server, { clientId, person: undefined, count: MAX_OWN_TOKENS + 50 });
  const fields = {
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
    scope: 'predict',
  };
  const made: string[] = [];
  const ask = async () => {
    const answer = await postForm(`${server.url}/oauth/token`, fields);
    assert.equal(answer.status, 200, answer.text);
    made.push(String(answer.json.access_token));
  };
  await callUntil(async () => (await countRows(store)).families <= MAX_OWN_TOKENS, ask);
  assert.equal((await countRows(store)).access, MAX_OWN_TOKENS);
  for (const token of made) {
    const answer = await postForm(`${server.url}/oauth/introspect`, { ...fields, token });
    assert.equal(answer.json.active, true);
  }
});

forEachEngine('two processes that delete surplus tokens at once leave no token without its family', async (store) => {
  await using server = await startAuthorizationServer(store);
  const { clientId } = await registerApplication(server, { grantTypes: ['client_credentials'] });
  const insertion = { clientId, person: undefined };
  await insertOldFamilies(server, { ...insertion, count: MAX_OWN_TOKENS + 5 });
  const nowMs = server.world.nowMs();
  const [deleteTokens, deleteFamilies] = deleteSurplusOwnTokensStatements({ clientId, familyId: '', nowMs });
  // On PostgreSQL the second statement sees what another process has committed since the first.
  await store.write(deleteTokens!.statement, deleteTokens!.parameters);
  await insertOldFamilies(server, { ...insertion, count: 5, madeAtMs: nowMs });
  await store.write(deleteFamilies!.statement, deleteFamilies!.parameters);
  const rows = await countRows(store);
  assert.deepEqual([rows.families, rows.access], [MAX_OWN_TOKENS + 5, MAX_OWN_TOKENS + 5]);
});

forEachEngine('tokens that a clock a day ahead has made end before those of a clock that is right', async (store) => {
  await using server = await startAuthorizationServer(store);
  const madeAtMs = server.world.nowMs() + 86_400_000;
  const person = await createPerson(server);
  const application = await registerApplication(server);
  const { clientId } = application;
  await obtainTokens(server, person, application);
  const [row] = await store.read(originSql);
  const origin = { userId: row!.user_id, credentialGeneration: row!.user_epoch, consentId: row!.grant_id };
  await insertOldFamilies(server, { clientId, person: origin, count: MAX_FAMILIES + 5, madeAtMs });
  const made: string[] = [];
  const isBounded = async () => (await countRows(store)).families <= MAX_FAMILIES;
  await callUntil(isBounded, async () => made.push((await obtainTokens(server, person, application)).access_token));
  for (const token of made) assert.equal(await callApi(server, token), 200);
});

forEachEngine(
  'own tokens of a clock that is right stay among ten thousand of a clock that was ahead',
  async (store) => {
    await using server = await startAuthorizationServer(store);
    const { clientId } = await registerApplication(server, { grantTypes: ['client_credentials'] });
    const insertion = { clientId, person: undefined };
    const nowMs = server.world.nowMs();
    await insertOldFamilies(server, { ...insertion, count: MAX_OWN_TOKENS, madeAtMs: nowMs + 86_400_000 });
    await insertOldFamilies(server, { ...insertion, count: 5, madeAtMs: nowMs });
    const right = (await store.read(familiesSql, [nowMs])).map(({ family_id: id }) => id).sort();
    await store.writeAll(deleteSurplusOwnTokensStatements({ clientId, familyId: '', nowMs }));
    assert.deepEqual((await store.read(familiesSql, [nowMs])).map(({ family_id: id }) => id).sort(), right);
  },
);

forEachEngine(
  'a client in a loop leaves 100 events an hour; the next one has the number of the others',
  async (store) => {
    await using server = await startAuthorizationServer(store);
    const { clientId, clientSecret } = await registerApplication(server, { grantTypes: ['client_credentials'] });
    const fields = {
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: clientSecret,
      scope: 'predict',
    };
    const ask = async () => assert.equal((await postForm(`${server.url}/oauth/token`, fields)).status, 200);
    const listIssues = async () =>
      (await listEvents(store, { limit: 1000 })).filter(({ kind }) => kind === 'token_issued');
    for (let count = 0; count < ISSUES_AN_HOUR + 7; count += 1) await ask();
    assert.equal((await listIssues()).length, ISSUES_AN_HOUR);
    server.advance(3_600_000);
    await ask();
    await ask();
    const notRecorded = (await listIssues()).map(({ details }) => details?.not_recorded).filter(Boolean);
    assert.deepEqual([(await listIssues()).length, notRecorded], [ISSUES_AN_HOUR + 2, [7]]);
  },
);
