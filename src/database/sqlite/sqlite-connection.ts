/** Opens a SQLite connection with its settings for durability, and translates its errors. */
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { describeError, Failure } from '../../errors.ts';
import { toSqliteParameters } from '../portable-sql.ts';
import type { Row, SqlValue, Statement } from '../store.ts';

/** How long a connection waits for another process that is writing (the service, a command). */
const BUSY_TIMEOUT_MS = 10_000;

const PRAGMAS = `
  PRAGMA temp_store = MEMORY;
  PRAGMA trusted_schema = OFF;
`;

// FULL: a commit is on the disk before it is acknowledged, in WAL too. The larger log makes checkpoints rarer. The mode of the
// journal is a part of the file, which a reader leaves as it is: a restored backup has no log before its first start.
const PRAGMAS_OF_WRITER = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA wal_autocheckpoint = 4000;
  PRAGMA journal_size_limit = 67108864;
`;

/** Cache sizes in KiB. Large bodies fill both caches, so both count as memory of the process; the writer reads little. */
const PRAGMAS_OF = {
  read: 'PRAGMA cache_size = -24576; PRAGMA query_only = ON;',
  write: `${PRAGMAS_OF_WRITER} PRAGMA cache_size = -8192;`,
} as const;

/** A connection with its prepared statements. Synchronous, as SQLite is. */
export interface SqliteConnection {
  run(statement: Statement<object>, parameters: readonly SqlValue[]): Row[];
  execute(text: string): void;
  /** A number that changes whenever another connection has committed. */
  dataVersion(): number;
  isInTransaction(): boolean;
  close(): void;
}

interface Prepared {
  readonly statement: StatementSync;
  readonly columns: readonly string[];
}

export function openSqliteConnection(path: string, access: 'read' | 'write'): SqliteConnection {
  // Not opened read-only: such a connection cannot recover the log that a killed process left behind.
  const database = openDatabase(path, PRAGMAS + PRAGMAS_OF[access]);
  const dataVersion = database.prepare('PRAGMA data_version');
  dataVersion.setReturnArrays(true);
  const prepared = new Map<string, Prepared>();

  const prepare = (statement: Statement<object>): Prepared => {
    const known = prepared.get(statement.name);
    if (known !== undefined) return known;
    const made = prepareStatement(database, statement);
    prepared.set(statement.name, made);
    return made;
  };

  return {
    run: (statement, parameters) => {
      try {
        return runPrepared(prepare(statement), parameters);
      } catch (error) {
        throw translateSqliteError(error, statement.name);
      }
    },
    execute: (text) => {
      try {
        database.exec(text);
      } catch (error) {
        throw translateSqliteError(error, text);
      }
    },
    dataVersion: () => (dataVersion.get() as unknown as [number])[0],
    isInTransaction: () => database.isTransaction,
    close: () => database.close(),
  };
}

function openDatabase(path: string, pragmas: string): DatabaseSync {
  try {
    const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true });
    database.exec(pragmas);
    return database;
  } catch (error) {
    throw new Failure(
      'unavailable',
      `Cannot open the database "${path}": ${describeSqliteError(error)}`,
      {},
      { cause: error },
    );
  }
}

const REMEDY_BY_CODE: Readonly<Record<number, string>> = {
  8: 'this user must be able to write it and the folder around it',
  11: 'it is damaged; restore a backup (made by "trivet backup")',
  13: 'the disk is full',
  14: 'this user must be able to write it and the folder around it',
  26: 'it is damaged, or a file of another program; restore a backup (made by "trivet backup")',
};

/** Thrown by SQLite itself, with its result code. */
export function isSqliteError(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'ERR_SQLITE_ERROR';
}

/** Adds to SQLite's message what to do about it. Primary result codes: https://sqlite.org/rescode.html */
export function describeSqliteError(error: unknown): string {
  const remedy = REMEDY_BY_CODE[((error as { errcode?: number }).errcode ?? 0) & 0xff];
  return remedy === undefined ? describeError(error) : `${describeError(error)}; ${remedy}`;
}

function prepareStatement(database: DatabaseSync, { text }: Statement<object>): Prepared {
  const statement = database.prepare(toSqliteParameters(text));
  statement.setReturnArrays(true);
  return { statement, columns: statement.columns().map((column) => column.name) };
}

function runPrepared({ statement, columns }: Prepared, parameters: readonly SqlValue[]): Row[] {
  const rows = statement.all(...parameters.map(toSqliteValue)) as unknown as SqlValue[][];
  return rows.map((values) => {
    const row: Record<string, SqlValue> = {};
    for (let index = 0; index < columns.length; index += 1) row[columns[index]!] = values[index]!;
    return row;
  });
}

// node:sqlite binds every number as REAL; `$1 / 2` and `'a' || $1` would then differ from PostgreSQL.
export function toSqliteValue(value: SqlValue): SQLInputValue {
  return Number.isSafeInteger(value) ? BigInt(value as number) : value;
}

const UNIQUE = new Set([1555, 2067, 2579]);
const FOREIGN_KEY = 787;
/** BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN: nothing was stored, unless a commit failed with it, and a retry may succeed. */
const UNAVAILABLE = new Set([5, 6, 8, 10, 13, 14]);

export function translateSqliteError(error: unknown, what: string): Error {
  if (error instanceof Failure) return error;
  const code = (error as { errcode?: number }).errcode ?? 0;
  const options = { cause: error };
  if (UNIQUE.has(code))
    return new Failure('conflict', 'Cannot write: such a row exists already', { isDuplicate: true }, options);
  if (code === FOREIGN_KEY)
    return new Failure(
      'conflict',
      'Cannot write: a row that it belongs to is missing',
      { isMissingParent: true },
      options,
    );
  if (UNAVAILABLE.has(code & 0xff))
    return new Failure('unavailable', 'Cannot use the database right now', { retryAfterSeconds: 1 }, options);
  return new Failure('internal', `Cannot run "${what}" on the database`, {}, options);
}

const IO_ERROR = 10;

/** A commit whose flush failed is undone here, but may still be found in the log when the database is opened after a crash. */
export function translateCommitError(error: unknown): unknown {
  const { cause } = error as { readonly cause?: { readonly errcode?: number } };
  if (((cause?.errcode ?? 0) & 0xff) !== IO_ERROR) return error;
  const details = { isUnknown: true, retryAfterSeconds: 1 };
  return new Failure('unavailable', 'The outcome of the write is unknown: the disk did not confirm it', details, {
    cause,
  });
}
