/** Declares the store: statements, reads, writes, procedures, and the errors they throw. */
import { Failure } from '../errors.ts';

/** A parameter or a column can have these types on both engines. Booleans are 0 or 1; times are epoch milliseconds. */
export type SqlValue = string | number | null | Uint8Array;

/** A row with its columns under their SQL names. Integers are numbers; a value beyond 2^53 throws. */
export type Row = Readonly<Record<string, SqlValue>>;

/**
 * One SQL text for both engines, in the portable subset (docs/decisions). Written as a constant in a `*-store.ts`;
 * prepared once under its name. Parameters are `$1`, `$2`, ….
 */
export interface Statement<R extends object = Row> {
  readonly name: string;
  readonly text: string;
  /** The shape of a row, for the type checker only. */
  readonly row?: R;
}

const registered = new Map<string, Statement>();

/** A name must always mean the same text: the engines cache prepared statements by name. */
export function statement<R extends object = Row>(name: string, text: string): Statement<R> {
  const known = registered.get(name);
  if (known === undefined) {
    // PostgreSQL cuts longer names, and two of them could become the same.
    if (name.length > 63)
      throw new Failure('internal', `Cannot register the statement "${name}": the name is too long`);
    registered.set(name, { name, text });
    return { name, text };
  }
  if (known.text !== text)
    throw new Failure('internal', `Cannot register the statement "${name}": another text has that name`);
  return known as Statement<R>;
}

/** Builds the name of a statement about a table or a column: `sweep`, `hook_tests` → `sweep-hook-tests`. */
export function nameStatement(...words: readonly string[]): string {
  return words.join('-').replaceAll('_', '-');
}

/** All statements that the loaded modules have declared. */
export function listStatements(): readonly Statement[] {
  return [...registered.values()];
}

/** A statement with its parameters, to be executed alone or in a transaction with others. */
export interface BoundStatement {
  readonly statement: Statement<object>;
  readonly parameters: readonly SqlValue[];
}

/** The operations of a procedure inside its transaction. */
export interface Transaction {
  run<R extends object>(statement: Statement<R>, parameters: readonly SqlValue[]): Promise<R[]>;
  /** Runs several statements that do not depend on each other's rows, in order: one round trip on PostgreSQL. */
  runAll(statements: readonly BoundStatement[]): Promise<Row[][]>;
}

/** The isolation of a procedure on PostgreSQL; on SQLite procedures run one after the other. */
export type Isolation = 'serializable' | 'read committed';

/**
 * A transaction with decisions in it. On SQLite it runs inside the writer thread, which imports `module` and takes the
 * export named `name`; on PostgreSQL it runs in this process, and again after a serialization failure or a deadlock.
 * So it must be pure but for its statements: clock, randomness and ids come in with `input`, which must be cloneable,
 * and it awaits nothing but `transaction.run`.
 */
export interface Procedure<Input, Result> {
  readonly name: string;
  readonly module: string;
  readonly isolation: Isolation;
  readonly run: (transaction: Transaction, input: Input) => Promise<Result>;
}

/** A serializable transaction that may read first and decide by its reads. Not for rows that many calls change. */
export function procedure<Input, Result>(
  module: string,
  name: string,
  run: (transaction: Transaction, input: Input) => Promise<Result>,
): Procedure<Input, Result> {
  return { name, module, isolation: 'serializable', run };
}

/**
 * A transaction in which writing statements make every decision (`ON CONFLICT … WHERE`, `UPDATE … WHERE … RETURNING`):
 * such a statement waits for the row and decides by its newest version, so read committed is enough, and calls on the
 * same rows queue instead of failing. Locks must be taken in one order, or calls end each other's transactions.
 */
export function conditionalProcedure<Input, Result>(
  module: string,
  name: string,
  run: (transaction: Transaction, input: Input) => Promise<Result>,
): Procedure<Input, Result> {
  return { name, module, isolation: 'read committed', run };
}

export interface WriteOptions {
  /**
   * On PostgreSQL the statements and their commit take one round trip, not two. If the connection breaks, it is never known
   * whether they were stored. For transactions that are very frequent and may be repeated.
   */
  readonly inOneTrip?: true;
  /**
   * On PostgreSQL, transactions with the same lock name run one after the other, and each sees what the previous one committed. For
   * writes that are repeated when their outcome is unknown: the server may still run the first transaction, and a condition such as
   * "not in the log yet" must not be evaluated until that one has ended.
   */
  readonly turn?: string;
}

/** The only access to the database, the same on SQLite and PostgreSQL. Every write is durable when its promise resolves. */
export interface Store {
  readonly engine: 'sqlite' | 'postgres';
  /** Runs a statement that only reads (SELECT, WITH, VALUES); it sees every write whose promise has resolved. */
  read<R extends object>(statement: Statement<R>, parameters?: readonly SqlValue[]): Promise<R[]>;
  /** Runs several reads in one round trip on PostgreSQL; a commit may happen between two of them. */
  readAll(statements: readonly BoundStatement[]): Promise<Row[][]>;
  /**
   * Returns the same answer as `read`, for rows that nearly every request needs. On SQLite it comes from a bounded cache until the
   * next commit; PostgreSQL cannot report a commit without a query, so it is read, together with what other requests
   * read at the same time. The rows are shared.
   */
  readCached<R extends object>(
    statement: Statement<R>,
    parameters?: readonly SqlValue[],
  ): Promise<readonly Readonly<R>[]>;
  /** Runs one statement, which is atomic. */
  write<R extends object>(statement: Statement<R>, parameters?: readonly SqlValue[]): Promise<R[]>;
  /** Runs several statements in one transaction; returns the rows of each. */
  writeAll(statements: readonly BoundStatement[], options?: WriteOptions): Promise<Row[][]>;
  /** Runs a registered procedure in one transaction. If it throws, the call rejects with that error, and nothing is committed. */
  call<Input, Result>(procedure: Procedure<Input, Result>, input: Input): Promise<Result>;
  /**
   * Calls `listener` within a second after another process (or this one) changed something under `topic`, and after a lost
   * connection. It may also be called without a change. Returns a function that stops it.
   */
  watch(topic: string, listener: () => void): () => void;
  /**
   * Returns new ids for rows of this database, rising, which no other process, command or thread ever gets: positive integers
   * below 2^53 that follow the time (`idAtMs`).
   */
  makeIds(count: number): Promise<number[]>;
  /**
   * How many milliseconds the clock of the database's server is ahead of this machine's; 0 on SQLite and while both agree within
   * a second. `withStoreClock` adds it.
   */
  clockAheadMs(): number;
  /** Notifies the watchers of `topic`. Execute it in the transaction that makes the change. */
  markChanged(topic: string, nowMs: number): BoundStatement;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A numbered, forward-only change of the schema, in one transaction. Tables are STRICT on SQLite. `{INT} {REAL} {TEXT} {BLOB}` are
 * replaced with the engine's types; a `{TEXT}` column compares by bytes on both.
 */
export interface Migration {
  readonly id: number;
  readonly name: string;
  readonly statements: readonly string[];
  /**
   * The migration only adds what older programs need not know, so they may start and run beside it: `test/migrations.test.ts`
   * executes the rules. Without it, a program that does not know the migration refuses the database.
   */
  readonly isExpansion?: true;
}
