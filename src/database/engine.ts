/** Declares the functions that SQLite and PostgreSQL implement differently. */
import type { EngineName } from './portable-sql.ts';
import type { BoundStatement, Procedure, Row, SqlValue, Statement, WriteOptions } from './store.ts';

/** The functions that SQLite and PostgreSQL implement differently; `openStore` makes a Store of them. */
export interface Engine {
  readonly name: EngineName;
  read(statement: Statement<object>, parameters: readonly SqlValue[]): Promise<Row[]>;
  readAll(statements: readonly BoundStatement[]): Promise<Row[][]>;
  /** The same answer as `read`, possibly from the read cache while it is known to be current. */
  readCached(statement: Statement<object>, parameters: readonly SqlValue[]): Promise<Row[]>;
  /** All in one transaction; a single statement is atomic by itself. */
  writeAll(statements: readonly BoundStatement[], options?: WriteOptions): Promise<Row[][]>;
  call<Input, Result>(procedure: Procedure<Input, Result>, input: Input): Promise<Result>;
  /** False only when certainly nothing was committed since the last time; asking is cheap. */
  mayHaveChanged(): boolean;
  /** How far the clock of the database is ahead of this machine's. */
  clockAheadMs(): number;
  /** How many wait for their turn. */
  countWaiting(): number;
  close(): Promise<void>;
}
