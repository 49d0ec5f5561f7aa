/** Reads and writes whole tables on either engine in one transaction. */
import { DatabaseSync } from 'node:sqlite';
import type pg from 'pg';
import type { Log } from '../../telemetry/log.ts';
import { toSqliteParameters } from '../portable-sql.ts';
import { openPostgresConnections } from '../postgres/postgres-pool.ts';
import { toSqliteValue } from '../sqlite/sqlite-connection.ts';
import type { SqlValue } from '../store.ts';
import type { TableShape } from './schema.ts';

/** One connection in one transaction, for moving whole tables: it reads one snapshot, and its writes are atomic. */
export interface TableConnection {
  countRows(table: string): Promise<number>;
  /** Reads the rows in no order, a few megabytes at a time. */
  readRows(table: TableShape): AsyncIterable<SqlValue[][]>;
  run(text: string, values: readonly SqlValue[]): Promise<void>;
  commit(): Promise<void>;
  /** Rolls back unless committed. */
  [Symbol.asyncDispose](): Promise<void>;
}

function selectAll({ name, columns }: TableShape): string {
  return `SELECT ${columns.map((column) => `"${column}"`).join(', ')} FROM ${name}`;
}

export function openSqliteTables(path: string, access: 'read' | 'write'): TableConnection {
  const database = new DatabaseSync(path, { timeout: 10_000, enableForeignKeyConstraints: true });
  database.exec('PRAGMA synchronous = FULL');
  database.exec(access === 'write' ? 'BEGIN IMMEDIATE' : 'BEGIN');
  return {
    countRows: async (table) => Number(database.prepare(`SELECT COUNT(*) AS count FROM ${table}`).get()?.count),
    readRows: (table) => readSqliteRows(database, table),
    run: async (text, values) => {
      database.prepare(toSqliteParameters(text)).run(...values.map(toSqliteValue));
    },
    commit: async () => database.exec('COMMIT'),
    [Symbol.asyncDispose]: async () => database.close(),
  };
}

async function* readSqliteRows(database: DatabaseSync, table: TableShape): AsyncIterable<SqlValue[][]> {
  const select = database.prepare(selectAll(table));
  select.setReturnArrays(true);
  let rows: SqlValue[][] = [];
  let size = FIRST_ROWS;
  for (const row of select.iterate() as unknown as Iterable<SqlValue[]>) {
    if (rows.push(row) < size) continue;
    yield rows;
    size = chooseSize(rows);
    rows = [];
  }
  if (rows.length > 0) yield rows;
}

export async function openPostgresTables(databaseUrl: string, log: Log): Promise<TableConnection> {
  const { pool } = openPostgresConnections(databaseUrl, 1, log);
  const client = await pool.connect();
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  // Only for the transaction: behind PgBouncer, other callers use its connection afterwards.
  await client.query('SET LOCAL statement_timeout = 0');
  await client.query('SET LOCAL idle_in_transaction_session_timeout = 0');
  return {
    countRows: async (table) => {
      const { rows } = await client.query<{ count: number }>(`SELECT COUNT(*) AS count FROM ${table}`);
      return rows[0]?.count ?? 0;
    },
    readRows: (table) => readPostgresRows(client, table),
    run: async (text, values) => {
      await client.query(text, values as SqlValue[]);
    },
    commit: async () => {
      await client.query('COMMIT');
    },
    [Symbol.asyncDispose]: async () => {
      client.release(true);
      await pool.end();
    },
  };
}

async function* readPostgresRows(client: pg.PoolClient, table: TableShape): AsyncIterable<SqlValue[][]> {
  await client.query(`DECLARE rows_of_table NO SCROLL CURSOR FOR ${selectAll(table)}`);
  for (let size = FIRST_ROWS; ; ) {
    const { rows } = await client.query<SqlValue[]>({ text: `FETCH ${size} FROM rows_of_table`, rowMode: 'array' });
    if (rows.length === 0) break;
    yield rows;
    size = chooseSize(rows);
  }
  await client.query('CLOSE rows_of_table');
}

const FIRST_ROWS = 10;
const MOST_ROWS = 500;
const BYTES_AT_A_TIME = 4 * 1024 * 1024;

/** How many rows to read next if they are as large as these: few models of megabytes each, hundreds of tokens. */
function chooseSize(rows: readonly SqlValue[][]): number {
  let bytes = 1;
  for (const value of rows.flat()) bytes += typeof value === 'string' || value instanceof Uint8Array ? value.length : 8;
  return Math.max(1, Math.min(MOST_ROWS, Math.floor((BYTES_AT_A_TIME * rows.length) / bytes)));
}
