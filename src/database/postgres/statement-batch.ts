/**
 * Sends several statements to PostgreSQL in one message, and reads their answers. A round trip wakes two processes, which costs
 * more than most statements do. The server runs the statements in order, and skips all after a failed one.
 */
import type pg from 'pg';
import type { Failure } from '../../errors.ts';
import type { BoundStatement, Row, SqlValue } from '../store.ts';
import { findParser, type Parser } from './column-parsers.ts';
import { translatePostgresError } from './postgres-pool.ts';

export interface StatementAnswer {
  readonly rows: Row[];
  /** The command that ran, such as `INSERT` or `COMMIT`. */
  readonly command: string;
}

export interface BatchOptions {
  /** False behind a pooler that gives each transaction another connection. */
  readonly isPrepared: boolean;
}

/** Returns the answers of all statements; throws the error of the first failed one. */
export function runBatch(
  client: pg.ClientBase,
  statements: readonly BoundStatement[],
  { isPrepared }: BatchOptions,
): Promise<StatementAnswer[]> {
  const { promise, resolve, reject } = Promise.withResolvers<StatementAnswer[]>();
  client.query({ callback: () => {}, ...createBatch({ statements, isPrepared, resolve, reject }) } as never);
  return promise;
}

interface BatchInput extends BatchOptions {
  readonly statements: readonly BoundStatement[];
  readonly resolve: (answers: StatementAnswer[]) => void;
  readonly reject: (error: unknown) => void;
}

/** The driver calls this with the messages of the server that answer the batch. */
function createBatch({ statements, isPrepared, resolve, reject }: BatchInput) {
  const answers: StatementAnswer[] = [];
  let columns: readonly Column[] = [];
  let rows: Row[] = [];
  let known: ColumnsByName = new Map();
  // A value that cannot be parsed must not stop the driver in the middle of the answer.
  let failure: Failure | undefined;
  const nameOf = (index: number) => statements[index]?.statement.name ?? '';
  const endStatement = (command: string): void => {
    if (isPrepared) known.set(nameOf(answers.length), columns);
    answers.push({ rows, command });
    rows = [];
    columns = known.get(nameOf(answers.length)) ?? [];
  };
  return {
    submit: (wire: Wire): void => {
      known = isPrepared ? findColumns(wire) : known;
      columns = known.get(nameOf(0)) ?? [];
      sendStatements(wire, statements, isPrepared ? known : undefined);
    },
    handleRowDescription: ({ fields }: { fields: readonly Field[] }): void => {
      columns = fields.map(({ name, dataTypeID }) => ({ name, parse: findParser(dataTypeID) }));
    },
    handleDataRow: ({ fields }: { fields: readonly (string | null)[] }): void => {
      try {
        rows.push(parseRow(columns, fields));
      } catch (error) {
        failure ??= translatePostgresError(error, nameOf(answers.length));
      }
    },
    handleCommandComplete: ({ text }: { text: string }): void => endStatement(text.split(' ', 1)[0]!),
    handleEmptyQuery: (): void => endStatement(''),
    handleError: (error: unknown): void => reject(translatePostgresError(error, nameOf(answers.length))),
    handleReadyForQuery: (): void => {
      if (failure === undefined) resolve(answers);
      else reject(failure);
    },
  };
}

/** The members of the driver's connection that a batch uses. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void };
  /** The texts of the statements that the server has prepared on this connection, by name. */
  readonly parsedStatements: Record<string, string>;
  parse(message: { readonly name: string; readonly text: string }): void;
  bind(message: {
    readonly statement: string;
    readonly values: readonly SqlValue[];
    readonly valueMapper: typeof toWire;
  }): void;
  describe(message: { readonly type: 'P'; readonly name: string }): void;
  execute(message: { readonly portal: string }): void;
  sync(): void;
  on(event: 'parseComplete', listener: () => void): void;
  off(event: 'parseComplete', listener: () => void): void;
  once(event: 'readyForQuery', listener: () => void): void;
}

interface Column {
  readonly name: string;
  readonly parse: Parser;
}

interface Field {
  readonly name: string;
  readonly dataTypeID: number;
}

/** The columns of prepared statements, which never change while they are prepared, so that they are asked for once. */
type ColumnsByName = Map<string, readonly Column[]>;
const columnsByWire = new WeakMap<Wire, ColumnsByName>();

function findColumns(wire: Wire): ColumnsByName {
  const found = columnsByWire.get(wire) ?? new Map();
  columnsByWire.set(wire, found);
  return found;
}

/** Sends the statements of a batch. Without `known`, nothing is prepared under a name. */
function sendStatements(wire: Wire, statements: readonly BoundStatement[], known: ColumnsByName | undefined): void {
  const preparing = new Map<string, string>();
  wire.stream.cork();
  for (const { statement, parameters } of statements) {
    const name = known === undefined ? '' : statement.name;
    if (name === '') wire.parse({ name, text: statement.text });
    else if (wire.parsedStatements[name] === undefined && !preparing.has(name)) {
      wire.parse(statement);
      preparing.set(name, statement.text);
    }
    wire.bind({ statement: name, values: parameters, valueMapper: toWire });
    if (!known?.has(name)) wire.describe({ type: 'P', name: '' });
    wire.execute({ portal: '' });
  }
  wire.sync();
  wire.stream.uncork();
  if (preparing.size > 0) recordPrepared(wire, [...preparing]);
}

/** The server confirms each in order; statements after a failed one are not prepared. */
function recordPrepared(wire: Wire, preparing: [name: string, text: string][]): void {
  const record = (): void => {
    const [name, text] = preparing.shift()!;
    wire.parsedStatements[name] = text;
  };
  wire.on('parseComplete', record);
  wire.once('readyForQuery', () => wire.off('parseComplete', record));
}

function toWire(value: SqlValue): string | Buffer | null {
  if (value === null || typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

function parseRow(columns: readonly Column[], fields: readonly (string | null)[]): Row {
  const row: Record<string, unknown> = {};
  for (let index = 0; index < columns.length; index += 1) {
    const field = fields[index]!;
    const { name, parse } = columns[index]!;
    row[name] = field === null ? null : parse(field);
  }
  return row as Row;
}
