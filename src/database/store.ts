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

/** A name means one text, for good: the engines keep what they prepared under the name. */
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

/** The name of a statement about a table or a column: `sweep`, `hook_tests` → `sweep-hook-tests`. */
export function nameStatement(...words: readonly string[]): string {
  return words.join('-').replaceAll('_', '-');
}

/** Every statement that a module loaded so far has written out. */
export function listStatements(): readonly Statement[] {
  return [...registered.values()];
}

/** A statement with its parameters, to be executed alone or in a transaction with others. */
export interface BoundStatement {
  readonly statement: Statement<object>;
  readonly parameters: readonly SqlValue[];
}

/** A procedure may do this inside its transaction. */
export interface Transaction {
  run<R extends object>(statement: Statement<R>, parameters: readonly SqlValue[]): Promise<R[]>;
  /** Several that do not depend on each other's rows, in their order: one round trip on PostgreSQL. */
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

/** A transaction that may read first and decide by what it read: serializable. Rows that many calls change do not belong here. */
export function procedure<Input, Result>(
  module: string,
  name: string,
  run: (transaction: Transaction, input: Input) => Promise<Result>,
): Procedure<Input, Result> {
  return { name, module, isolation: 'serializable', run };
}

/**
 * One in which every decision is made by a statement that writes (`ON CONFLICT … WHERE`, `UPDATE … WHERE … RETURNING`):
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
   * On PostgreSQL, transactions with the same name of a turn run one after the other, and each sees what the one before it
   * committed. For what is written again when its outcome is unknown: the server may still run the first transaction, and
   * a condition such as "not in the log yet" must not be evaluated until that one has ended.
   */
  readonly turn?: string;
}

/** The one way to the database, the same on SQLite and PostgreSQL. Every write is durable when its promise resolves. */
export interface Store {
  readonly engine: 'sqlite' | 'postgres';
  /** A statement that only reads (SELECT, WITH, VALUES); it sees every write whose promise has resolved. */
  read<R extends object>(statement: Statement<R>, parameters?: readonly SqlValue[]): Promise<R[]>;
  /** Several that only read, in one round trip on PostgreSQL; a commit may come between two of them. */
  readAll(statements: readonly BoundStatement[]): Promise<Row[][]>;
  /**
   * The same answer as `read`, for rows that nearly every request needs. On SQLite it comes from a bounded cache until the
   * next commit; PostgreSQL cannot report a commit without a query, so it is read, together with what other requests
   * read at the same time. The rows are shared.
   */
  readCached<R extends object>(
    statement: Statement<R>,
    parameters?: readonly SqlValue[],
  ): Promise<readonly Readonly<R>[]>;
  /** One statement, atomic by itself. */
  write<R extends object>(statement: Statement<R>, parameters?: readonly SqlValue[]): Promise<R[]>;
  /** Several statements that commit together or not at all; the rows of each. */
  writeAll(statements: readonly BoundStatement[], options?: WriteOptions): Promise<Row[][]>;
  /** A registered procedure, in one transaction. What it throws is thrown here, and nothing is committed. */
  call<Input, Result>(procedure: Procedure<Input, Result>, input: Input): Promise<Result>;
  /**
   * Calls `listener` within a second after another process (or this one) changed something under `topic`, and once a
   * connection was lost. A hint: it may come without cause. Returns the way to stop listening.
   */
  watch(topic: string, listener: () => void): () => void;
  /**
   * New ids for rows of this database, rising; no other process, command or thread ever gets one of them. Positive
   * integers below 2^53 that follow the time (`idAtMs`).
   */
  makeIds(count: number): Promise<number[]>;
  /**
   * How far the clock of the database's server is ahead of this machine's; 0 on SQLite and while both agree within a
   * second. `withStoreClock` adds it.
   */
  clockAheadMs(): number;
  /** Notifies the watchers of `topic`. Execute it in the transaction that makes the change. */
  markChanged(topic: string, nowMs: number): BoundStatement;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A numbered, forward-only change of the schema; it commits as a whole. Tables are made STRICT on SQLite. `{INT} {REAL} {TEXT} {BLOB}`
 * stand for the engine's own types; a `{TEXT}` column compares by bytes on both.
 */
export interface Migration {
  readonly id: number;
  readonly name: string;
  readonly statements: readonly string[];
  /**
   * It only adds what older programs need not know, so they may start and run beside it: `test/migrations.test.ts`
   * executes the rules. Without it, a program that does not know the migration refuses the database.
   */
  readonly isExpansion?: true;
}
