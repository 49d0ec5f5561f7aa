/** Declares the functions that SQLite and PostgreSQL implement differently. */
import type { EngineName } from './portable-sql.ts';
import type { BoundStatement, Procedure, Row, SqlValue, Statement, WriteOptions } from './store.ts';

/** The functions that SQLite and PostgreSQL implement differently; `openStore` makes a Store of them. */
export interface Engine {
  readonly name: EngineName;
  read(statement: Statement<object>, parameters: readonly SqlValue[]): Promise<Row[]>;
  readAll(statements: readonly BoundStatement[]): Promise<Row[][]>;
  /** Returns the same answer as `read`, possibly from the read cache while that is known to be current. */
  readCached(statement: Statement<object>, parameters: readonly SqlValue[]): Promise<Row[]>;
  /** All in one transaction; a single statement is atomic by itself. */
  writeAll(statements: readonly BoundStatement[], options?: WriteOptions): Promise<Row[][]>;
  call<Input, Result>(procedure: Procedure<Input, Result>, input: Input): Promise<Result>;
  /** Returns false only when certainly nothing was committed since the last call, which is cheap. */
  mayHaveChanged(): boolean;
  /** How many milliseconds the clock of the database is ahead of this machine's. */
  clockAheadMs(): number;
  /** How many calls wait for their turn. */
  countWaiting(): number;
  close(): Promise<void>;
}
