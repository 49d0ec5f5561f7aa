import {
  conditionalProcedure,
  type Migration,
  procedure,
  type Row,
  type Statement,
  type Store,
  statement,
} from '../../../src/database/store.ts';
import { Failure } from '../../../src/errors.ts';

/** A small table with a statement of every kind, for the tests of the database itself. */

export const noteMigration: Migration = {
  id: 1000,
  name: 'note',
  statements: [
    `CREATE TABLE note (
       id {TEXT} NOT NULL PRIMARY KEY,
       number {INT} NOT NULL,
       ratio {REAL},
       body {BLOB},
       parent_id {TEXT} REFERENCES note (id)
     )`,
    'CREATE INDEX note_number ON note (number)',
  ],
};

export interface NoteRow {
  readonly id: string;
  readonly number: number;
  readonly ratio: number | null;
  readonly body: Uint8Array | null;
}

export const insertNoteSql: Statement<{ readonly id: string }> = statement(
  'test-note-insert',
  'INSERT INTO note (id, number) VALUES ($1, $2) RETURNING id',
);

export const insertFullNoteSql: Statement<Row> = statement(
  'test-note-insert-full',
  'INSERT INTO note (id, number, ratio, body, parent_id) VALUES ($1, $2, $3, $4, $5)',
);

export const findNoteSql: Statement<NoteRow> = statement(
  'test-note-find',
  'SELECT id, number, ratio, body FROM note WHERE id = $1',
);

export const listNotesSql: Statement<{ readonly id: string; readonly number: number }> = statement(
  'test-note-list',
  'SELECT id, number FROM note ORDER BY id',
);

export const takeNoteSql: Statement<{ readonly id: string }> = statement(
  'test-note-take',
  'UPDATE note SET number = number - 1 WHERE id = $1 AND number > 0 RETURNING id',
);

const sumNotesSql: Statement<{ readonly total: number | null }> = statement(
  'test-note-sum',
  'SELECT SUM(number) AS total FROM note',
);

/** One statement decides, so nothing has to be serializable. */
export const takeNoteOnce = conditionalProcedure(
  import.meta.url,
  'takeNoteOnce',
  async (transaction, { id, receipt }: { readonly id: string; readonly receipt: string }) => {
    if ((await transaction.run(takeNoteSql, [id])).length === 0) return false;
    await transaction.run(insertNoteSql, [receipt, 1]);
    return true;
  },
);

/** Causes write skew unless the engine prevents it: every caller adds one while the sum is below the limit. */
export const insertWithinLimit = procedure(
  import.meta.url,
  'insertWithinLimit',
  async (transaction, input: { readonly id: string; readonly limit: number }) => {
    const [row] = await transaction.run(sumNotesSql, []);
    if ((row?.total ?? 0) >= input.limit) return { isInserted: false };
    await transaction.run(insertNoteSql, [input.id, 1]);
    return { isInserted: true };
  },
);

export const insertAndRefuse = procedure(import.meta.url, 'insertAndRefuse', async (transaction, id: string) => {
  await transaction.run(insertNoteSql, [id, 1]);
  throw new Failure('forbidden', 'Cannot insert: not today', { field: 'id' });
});

export const insertAndForgive = procedure(import.meta.url, 'insertAndForgive', async (transaction, id: string) => {
  await transaction.run(insertNoteSql, [`${id}-before`, 1]);
  await transaction.run(insertNoteSql, [id, 1]).catch(() => undefined);
  return 'forgiven';
});

export const insertAndWait = procedure(import.meta.url, 'insertAndWait', async (transaction, id: string) => {
  await transaction.run(insertNoteSql, [id, 1]);
  // Not an SQL statement.
  await new Promise((resolve) => setTimeout(resolve, 50));
  await transaction.run(insertNoteSql, [`${id}-late`, 1]);
});

export const insertAndBreak = procedure(import.meta.url, 'insertAndBreak', async (transaction, id: string) => {
  await transaction.run(insertNoteSql, [id, 1]);
  throw new TypeError('broken');
});

export const insertPair = procedure(import.meta.url, 'insertPair', async (transaction, id: string) => {
  await transaction.run(insertNoteSql, [`${id}-a`, 1]);
  await transaction.run(insertNoteSql, [`${id}-b`, 1]);
});

/** Ends the thread that it runs in; only for SQLite, where that is the writer's. */
export const insertAndExit = procedure(import.meta.url, 'insertAndExit', async (transaction, id: string) => {
  await transaction.run(insertNoteSql, [id, 1]);
  process.exit(1);
});

export const insertAndAnswerFunction = procedure(
  import.meta.url,
  'insertAndAnswerFunction',
  async (transaction, id: string) => {
    await transaction.run(insertNoteSql, [id, 1]);
    return () => id;
  },
);

export async function listIds(store: Store): Promise<string[]> {
  return (await store.read(listNotesSql)).map((row) => row.id);
}

export function hasCode(code: string) {
  return (error: Failure): boolean => error.code === code;
}
