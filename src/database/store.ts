/** What a parameter or a column can be on both engines. Booleans are 0 or 1; times are epoch milliseconds. */
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
  /** Only for the type checker: the shape of a row. */
  readonly row?: R;
}

export function statement<R extends object = Row>(name: string, text: string): Statement<R> {
  return { name, text };
}

/** One statement of a unit with its parameters. */
export interface Step<R extends object = Row> {
  readonly statement: Statement<R>;
  readonly parameters: readonly SqlValue[];
}

/** What a procedure may do inside its transaction. */
export interface Transaction {
  run<R extends object>(statement: Statement<R>, parameters: readonly SqlValue[]): Promise<R[]>;
}

/**
 * A transaction with decisions in it. On SQLite it runs inside the writer thread, which imports `module` and takes the
 * export named `name`; on PostgreSQL it runs in this process, serializable, and again after a serialization failure.
 * So it must be pure but for its statements: clock, randomness and ids come in with `input`, which must be cloneable,
 * and it awaits nothing but `transaction.run`.
 */
export interface Procedure<Input, Result> {
  readonly name: string;
  readonly module: string;
  readonly run: (transaction: Transaction, input: Input) => Promise<Result>;
}

export function procedure<Input, Result>(
  module: string,
  name: string,
  run: (transaction: Transaction, input: Input) => Promise<Result>,
): Procedure<Input, Result> {
  return { name, module, run };
}

/** The one way to the database, the same on SQLite and PostgreSQL. Every write is durable when its promise resolves. */
export interface Store {
  readonly engine: 'sqlite' | 'postgres';
  read<R extends object>(statement: Statement<R>, parameters?: readonly SqlValue[]): Promise<R[]>;
  /** One statement, atomic by itself. */
  write<R extends object>(statement: Statement<R>, parameters?: readonly SqlValue[]): Promise<R[]>;
  /** Several statements that commit together or not at all; the rows of each. */
  writeAll(steps: readonly Step[]): Promise<Row[][]>;
  /** A registered procedure, in one transaction. What it throws is thrown here, and nothing is committed. */
  call<Input, Result>(procedure: Procedure<Input, Result>, input: Input): Promise<Result>;
  /**
   * Calls `listener` within a second after another process (or this one) changed something under `topic`, and once a
   * connection was lost. A hint: it may come without cause. Returns the way to stop listening.
   */
  watch(topic: string, listener: () => void): () => void;
  /** The step that tells the watchers of `topic`; put it into the unit that makes the change. */
  touch(topic: string, nowMs: number): Step;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A numbered, forward-only change of the schema. `{INT} {REAL} {TEXT} {BLOB}` stand for the engine's own types. */
export interface Migration {
  readonly id: number;
  readonly name: string;
  readonly statements: readonly string[];
}
