import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { type Store, statement } from '../../database/store.ts';
import { createUser } from '../accounts/user-store.ts';
import { searchPeople } from './people-store.ts';

const world = createStillWorld();

function addPerson(store: Store, login: string, name: string, email: string | null = null) {
  return createUser(store, world, { login, name, email, isAdmin: false, passwordHash: null });
}

async function findLogins(store: Store, q: string, more: { after?: string; limit?: number } = {}): Promise<string[]> {
  return (await searchPeople(store, { q, limit: 10, ...more })).people.map(({ login }) => login);
}

forEachEngine('searchPeople() finds names in every case of every script', async (store) => {
  await addPerson(store, 'omer', 'Ömer Yılmaz');
  await addPerson(store, 'ivan', 'Иван Петров', 'ИВАН@пример.example');
  await addPerson(store, 'odysseus', 'ΟΔΥΣΣΕΥΣ 100%');
  await addPerson(store, 'ilker', 'İlker');
  await addPerson(store, 'wang', '王小明');
  const cases: [q: string, logins: string[]][] = [
    ...['Ömer', 'ömer', 'ÖMER', ' öMeR y', 'OMER'].map((q): [string, string[]] => [q, ['omer']]),
    ...['Иван', 'иван', 'ИВАН', 'иван@ПРИМЕР', 'ПЕТ'].map((q): [string, string[]] => [q, ['ivan']]),
    ...['οδυσσευς', 'ΟΔΥΣ', 'Σευς 100%'].map((q): [string, string[]] => [q, ['odysseus']]),
    ['İlker', ['ilker']],
    ['王小', ['wang']],
    ['İvan', []],
    ['Ümer', []],
    ['Öm_r', []],
    ['ö%', []],
  ];
  for (const [q, logins] of cases) assert.deepEqual(await findLogins(store, q), logins, q);
});

forEachEngine('searchPeople() reads on to the people that fit, a page at a time', async (store) => {
  for (let count = 0; count < 520; count += 1)
    await addPerson(store, `dev${String(count).padStart(3, '0')}`, count % 260 === 259 ? 'Åsa' : 'Ewa');
  assert.deepEqual(await findLogins(store, 'åsa'), ['dev259', 'dev519']);
  assert.deepEqual(await findLogins(store, 'ÅSA', { limit: 1 }), ['dev259']);
  assert.deepEqual(await findLogins(store, 'ÅSA', { after: 'dev259', limit: 1 }), ['dev519']);
  assert.deepEqual(await findLogins(store, 'ewa', { limit: 2 }), ['dev000', 'dev001']);
});

const addPeopleSql = statement(
  'test-add-people',
  `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 2199)
   INSERT INTO users (id, login, login_key, name, is_admin, created_at_ms)
   SELECT 'id' || i, 'dev' || (10000 + i), 'dev' || (10000 + i), CASE WHEN i % 2100 = 0 THEN 'Åsa' ELSE 'Ewa' END, 0, 1 FROM n`,
);

forEachEngine('searchPeople() compares 2,000 people a call, and says where to go on', async (store) => {
  await store.write(addPeopleSql);
  const search = async (after?: string) => {
    const { people, next } = await searchPeople(store, { q: 'å', limit: 10, after });
    return [people.map(({ login }) => login), next];
  };
  assert.deepEqual(await search(), [['dev10000'], 'dev11999']);
  assert.deepEqual(await search('dev11999'), [['dev12100'], null]);
});
