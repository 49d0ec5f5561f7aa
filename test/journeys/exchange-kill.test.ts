/**
 * T21: `kill -9` in the middle of code exchanges. A code is redeemed together with its tokens, or not at all: the code of an answered
 * exchange is spent, that of an unanswered one may be spent or not, and no token belongs to an unspent code.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { statement } from '../../src/database/store.ts';
import { realWorld } from '../../src/world.ts';
import {
  type Answer,
  createPerson,
  type Fields,
  obtainCode,
  postForm,
  registerApplication,
  startAuthorizationServer,
} from '../support/authorization/authorization-server.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, openTestStore, type StorePlace } from '../support/store/engines.ts';

const LIVES = process.env.TRIVET_LONG === '1' ? 20 : 2;
const CODES_A_LIFE = 60;
const AT_ONCE = 8;
const environment = { AUTHORIZATION_CODE_SECONDS: '600', LOG_LEVEL: 'error', TRUSTED_PROXIES: '127.0.0.1' };

const halfDoneSql = statement<{ count: number }>(
  'test-half-done-exchanges',
  `SELECT (SELECT COUNT(*) FROM authorization_codes c
             LEFT JOIN token_families f ON f.family_id = c.family_id
             WHERE (c.redeemed_at_ms IS NULL) <> (f.family_id IS NULL))
        + (SELECT COUNT(*) FROM token_families f
             WHERE NOT EXISTS (SELECT 1 FROM authorization_codes c WHERE c.family_id = f.family_id)
                OR NOT EXISTS (SELECT 1 FROM access_tokens a WHERE a.family_id = f.family_id)
                OR NOT EXISTS (SELECT 1 FROM refresh_tokens r WHERE r.family_id = f.family_id)) AS count`,
);

/** Creates the fields that each exchange sends. */
async function createExchanges(place: StorePlace): Promise<Fields[]> {
  await using store = await openTestStore(place);
  await using server = await startAuthorizationServer(store, { environment });
  const person = await createPerson(server, `person-${realWorld.uuid().slice(0, 8)}`);
  const { clientId, clientSecret } = await registerApplication(server);
  const exchanges: Fields[] = [];
  for (let made = 0; made < CODES_A_LIFE; made += 1) {
    const code = await obtainCode(server, person, { client_id: clientId });
    exchanges.push({ grant_type: 'authorization_code', code, client_id: clientId, client_secret: clientSecret });
  }
  return exchanges;
}

/** Each life uses another address; otherwise the refusals of all would reach the limit of wrong grants. */
function exchange(url: string, fields: Fields, life: number): Promise<Answer> {
  return postForm(`${url}/oauth/token`, fields, { 'x-forwarded-for': `192.0.2.${life + 1}` });
}

/** A few at a time, until the kill; undefined is an exchange whose answer never came. */
async function exchangeUntilKilled(program: Program, exchanges: readonly Fields[], life: number) {
  const answers: (Answer | undefined)[] = [];
  const killAt = AT_ONCE + Math.floor(realWorld.random() * (CODES_A_LIFE - 2 * AT_ONCE));
  let answered = 0;
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < exchanges.length; index = next++) {
      answers[index] = await exchange(program.httpUrl, exchanges[index]!, life).catch(() => undefined);
      if (answers[index] === undefined) return;
      answered += 1;
      if (answered === killAt) void program.kill();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  await program.exited;
  return answers;
}

test('T21 kill -9 in the middle of exchanges leaves no code half redeemed', async (t) => {
  const place = await createStorePlace('sqlite');
  t.after(() => rmSync(place.dataDir, { recursive: true, force: true, maxRetries: 20 }));
  const counts = { answered: 0, unanswered: 0, spentUnanswered: 0 };
  for (let life = 0; life < LIVES; life += 1) {
    const exchanges = await createExchanges(place);
    const before = await exchangeUntilKilled(await startProgram(environment, place.dataDir), exchanges, life);
    const second = await startProgram(environment, place.dataDir);
    for (const [index, fields] of exchanges.entries()) {
      const first = before[index];
      assert.ok(first === undefined || first.status === 200, first?.text);
      const again = await exchange(second.httpUrl, fields, life);
      assert.ok(again.status === 400 || (again.status === 200 && first === undefined), again.text);
      if (first !== undefined) counts.answered += 1;
      else if (index in before) counts.unanswered += 1;
      if (first === undefined && again.status === 400) counts.spentUnanswered += 1;
    }
    assert.equal(await second.stop(), 0);
  }
  t.diagnostic(JSON.stringify(counts));
  assert.ok(counts.answered > 0 && counts.unanswered > 0, 'it was killed in the middle');
  await using store = await openTestStore(place);
  assert.deepEqual(await store.read(halfDoneSql), [{ count: 0 }]);
});
