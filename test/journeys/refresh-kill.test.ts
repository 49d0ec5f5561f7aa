/**
 * `kill -9` in the middle of refreshes: no token that was acknowledged is lost, and no family has two live successors.
 * The long form: `TRIVET_TEST_REFRESHES=10000 node --test test/journeys/refresh-kill.test.ts`.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { type Statement, statement } from '../../src/database/store.ts';
import {
  createPerson,
  obtainTokens,
  postForm,
  registerApplication,
  startAuthorizationServer,
} from '../support/authorization/authorization-server.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, openTestStore, type StorePlace } from '../support/store/engines.ts';

const REFRESHES = Number(process.env.TRIVET_TEST_REFRESHES ?? 300);
const FAMILIES = 16;
const REFRESHES_A_LIFE = Math.max(100, REFRESHES / 40);

/** One client with one grant. */
interface Chain {
  /** The last refresh token that an answer brought. */
  token: string;
  acknowledged: number;
}

const familyStatesSql: Statement<{ family_id: string; tokens: number; newest: number; live: number }> = statement(
  'test-family-states',
  `SELECT family_id, COUNT(*) AS tokens, MAX(generation) AS newest,
     SUM(CASE WHEN rotated_at_ms IS NULL THEN 1 ELSE 0 END) AS live
   FROM refresh_tokens GROUP BY family_id`,
);

async function createChains(place: StorePlace): Promise<Chain[]> {
  await using store = await openTestStore(place);
  await using server = await startAuthorizationServer(store);
  const person = await createPerson(server);
  const application = await registerApplication(server);
  const chains: Chain[] = [];
  for (let i = 0; i < FAMILIES; i++) {
    const { refresh_token: token } = await obtainTokens(server, person, application);
    chains.push({ token, acknowledged: 0 });
  }
  return chains;
}

/** Goes on until the program dies. An answer that is no success is one too many. */
async function keepRefreshing(program: Program, chain: Chain, refusals: string[]): Promise<void> {
  for (;;) {
    try {
      const fields = { grant_type: 'refresh_token', refresh_token: chain.token };
      const answer = await postForm(`${program.httpUrl}/oauth/token`, fields);
      if (answer.status !== 200) {
        refusals.push(`${answer.status} ${answer.text}`);
        return;
      }
      chain.token = String(answer.json.refresh_token);
      chain.acknowledged += 1;
    } catch {
      // The connection broke: the program is gone, and the outcome of this refresh is unknown.
      return;
    }
  }
}

function countAcknowledged(chains: readonly Chain[]): number {
  return chains.reduce((sum, chain) => sum + chain.acknowledged, 0);
}

test(`kill -9 during ${REFRESHES} refreshes loses no acknowledged token and forks no family`, async () => {
  const place = await createStorePlace('sqlite');
  try {
    const chains = await createChains(place);
    const refusals: string[] = [];
    let lives = 0;
    while (countAcknowledged(chains) < REFRESHES && refusals.length === 0) {
      // A long grace: what a kill swallowed is asked for again after the restart, however slow that is.
      const program = await startProgram({ REFRESH_GRACE_SECONDS: '600', LOG_LEVEL: 'error' }, place.dataDir);
      const before = countAcknowledged(chains);
      const clients = chains.map((chain) => keepRefreshing(program, chain, refusals));
      await waitUntil(() => countAcknowledged(chains) - before >= REFRESHES_A_LIFE || refusals.length > 0, 1);
      await program.kill();
      await Promise.all(clients);
      lives += 1;
    }
    assert.deepEqual(refusals, []);
    assert.ok(lives >= 2, 'it was killed more than once');

    await using store = await openTestStore(place);
    const families = await store.read(familyStatesSql);
    assert.equal(families.length, FAMILIES);
    for (const { tokens, newest, live } of families) {
      assert.equal(live, 1, 'one live successor');
      assert.equal(tokens, newest + 1, 'one token a generation');
    }
    await using server = await startAuthorizationServer(store, { environment: { REFRESH_GRACE_SECONDS: '600' } });
    for (const { token } of chains) {
      const answer = await postForm(`${server.url}/oauth/token`, { grant_type: 'refresh_token', refresh_token: token });
      assert.equal(answer.status, 200, 'the last acknowledged token works');
    }
  } finally {
    rmSync(place.dataDir, { recursive: true, force: true, maxRetries: 20 });
  }
});
