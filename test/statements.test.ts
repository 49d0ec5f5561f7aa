import assert from 'node:assert/strict';
import { globSync, readFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { before, test } from 'node:test';
import pg from 'pg';
import { toSqliteParameters } from '../src/database/portable-sql.ts';
import { databaseFileOf } from '../src/database/startup/open-store.ts';
import { listStatements, type Statement } from '../src/database/store.ts';
import { createStorePlace, findReasonToSkip, openTestStore } from './support/store/engines.ts';

/**
 * Every statement of the program, on both engines: it must be understood, and its columns must have the same names.
 * So every statement is checked to be in the portable subset, even without another test that runs it.
 */

const sources = globSync('src/**/*.ts').filter((path) => !path.endsWith('.test.ts'));
const makesStatements =
  /\b(statement(<[^(]*>)?\(\s*['`]|multiRowStatement\(|multiRowInsert\(|createEncryptedColumn\(\{)/;
const writers = sources.filter((path) => makesStatements.test(readFileSync(path, 'utf8')));
for (const path of writers) await import(resolve(path));
const statements = listStatements();

/** Words that PostgreSQL understands and another database of its kind, or SQLite, does not; or that hide the clock. */
const FORBIDDEN =
  /\b(now\s*\(|current_timestamp|for\s+(no\s+key\s+)?update|for\s+share|array\s*\[|any\s*\(|unnest|generate_series|nextval|serial|listen|notify|pg_\w+|ilike|::\w+)/i;

test('the statements of every store are looked at', () => {
  assert.ok(writers.some((path) => path.endsWith('-store.ts')));
  const stores = globSync('src/**/*-store.ts').filter((path) => readFileSync(path, 'utf8').includes('statement<'));
  assert.deepEqual(
    stores.filter((path) => !writers.includes(path)),
    [],
  );
  assert.ok(statements.length > writers.length);
});

test('the names of statements are words with dashes between', () => {
  const offences = statements.map(({ name }) => name).filter((name) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name));
  assert.deepEqual(offences, []);
});

test('no statement uses what only one database has', () => {
  const offences = statements.filter(({ text }) => FORBIDDEN.test(text)).map(({ name, text }) => `${name}: ${text}`);
  assert.deepEqual(offences, []);
});

test('the parameters of a statement are numbered without a gap', () => {
  for (const { name, text } of statements) {
    const used = new Set([...text.matchAll(/\$(\d+)/g)].map((match) => Number(match[1])));
    assert.deepEqual(
      [...used].sort((one, other) => one - other),
      [...used].map((_, index) => index + 1),
      name,
    );
  }
});

let sqliteColumns: ReadonlyMap<string, readonly string[]>;
let sqlitePlans: ReadonlyMap<string, string>;

before(async () => {
  const place = await createStorePlace('sqlite');
  await using _store = await openTestStore(place);
  using database = new DatabaseSync(databaseFileOf(place.dataDir));
  sqliteColumns = new Map(statements.map((statement) => [statement.name, describeStatement(database, statement)]));
  const explained = [...PLANS.map(([name]) => name), ...listOverviewStatements()];
  sqlitePlans = new Map(explained.map((name) => [name, explainStatement(database, name)]));
  rmSync(place.dataDir, { recursive: true });
});

/** Statements that every process repeats within a minute, in the event loop on SQLite: they must not read what they do not need. */
const PLANS = [
  [
    'accuracy-sums-find-first',
    'SEARCH accuracy_sums USING COVERING INDEX accuracy_sums_to_merge (kind=? AND minutes=? AND start_ms<?)',
  ],
  [
    'error-counts-find-first',
    'SEARCH error_counts USING COVERING INDEX error_counts_to_merge (kind=? AND minutes=? AND start_ms<?)',
  ],
  [
    'accuracy-counts-find-first',
    'SEARCH accuracy_counts USING COVERING INDEX accuracy_counts_to_merge (minutes=? AND start_ms<?)',
  ],
  [
    'live-state-times',
    'SCAN s USING COVERING INDEX live_states_times; CORRELATED SCALAR SUBQUERY 1; SEARCH m USING COVERING INDEX sqlite_autoindex_models_1 (name=?)',
  ],
] as const;

function explainStatement(database: DatabaseSync, name: string): string {
  const { text = '' } = statements.find((statement) => statement.name === name) ?? {};
  const steps = database.prepare(`EXPLAIN QUERY PLAN ${toSqliteParameters(text)}`).all();
  return steps.map(({ detail }) => detail).join('; ');
}

function describeStatement(database: DatabaseSync, { name, text }: Statement): readonly string[] {
  try {
    return database
      .prepare(toSqliteParameters(text))
      .columns()
      .map((column) => column.name);
  } catch (error) {
    return [`${name} is not understood: ${(error as Error).message}`];
  }
}

test('SQLite understands every statement', () => {
  const refused = [...sqliteColumns.values()].flat().filter((column) => column.includes('is not understood'));
  assert.deepEqual(refused, []);
});

for (const [name, plan] of PLANS)
  test(`SQLite reads an index alone for ${name}`, () => {
    assert.equal(sqlitePlans.get(name), plan);
  });

/** An open overview asks them every few seconds. */
function listOverviewStatements(): readonly string[] {
  return statements.map(({ name }) => name).filter((name) => /^overview-|^troubled-hooks-after$/.test(name));
}

test('SQLite reads no table as a whole for the overview', () => {
  const names = listOverviewStatements();
  assert.ok(names.length >= 9);
  const whole = /SCAN (r|h|q|d|repositories|hooks|endpoint_queue|deliveries)(;|$)/;
  assert.deepEqual(
    names.filter((name) => whole.test(sqlitePlans.get(name) ?? '')),
    [],
  );
});

test('PostgreSQL understands every statement, and its columns have the same names', {
  skip: findReasonToSkip('postgres'),
}, async (t) => {
  const place = await createStorePlace('postgres');
  rmSync(place.dataDir, { recursive: true });
  await using _store = await openTestStore(place);
  const client = new pg.Client(place.databaseUrl);
  await client.connect();
  await using _client = { [Symbol.asyncDispose]: () => client.end() };
  const differences: string[] = [];
  for (const statement of statements) {
    const columns = await describeOnPostgres(client, statement);
    const expected = sqliteColumns.get(statement.name) ?? [];
    if (columns.join() !== expected.join())
      differences.push(`${statement.name}: ${columns.join()} instead of ${expected.join()}`);
  }
  assert.deepEqual(differences, []);
  t.diagnostic(`${statements.length} statements`);
});

interface FieldsEvent {
  readonly fields: readonly { readonly name: string }[];
}

// Runs it with NULL everywhere and undoes it. The server names the columns before it runs anything, so a row that is
// refused (class 22 or 23) does not matter.
async function describeOnPostgres(connected: pg.Client, { name, text }: Statement): Promise<readonly string[]> {
  const connection = (connected as unknown as { connection: NodeJS.EventEmitter }).connection;
  let columns: readonly string[] = [];
  const note = (event: FieldsEvent): void => {
    columns = event.fields.map((field) => field.name);
  };
  const count = new Set(text.match(/\$\d+/g)).size;
  await connected.query('BEGIN');
  connection.on('rowDescription', note);
  try {
    await connected.query({ text, values: Array.from({ length: count }, () => null) });
  } catch (error) {
    const { code = '', message } = error as { code?: string; message: string };
    if (!/^2[23]/.test(code)) columns = [`${name} is not understood: ${message}`];
  }
  connection.off('rowDescription', note);
  await connected.query('ROLLBACK');
  return columns;
}
