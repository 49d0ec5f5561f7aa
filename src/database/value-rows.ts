/** Builds multi-row INSERT and VALUES statements with parameters, for both engines. */
import { type BoundStatement, type SqlValue, type Statement, statement } from './store.ts';

/**
 * Multi-row statements in the portable subset. The list of values has one of a few fixed lengths (widths), so that each length
 * is prepared once. A row is an object, and the text names its values, so values cannot be swapped by mistake.
 */
const WIDTHS = [64, 32, 16, 8, 4, 2, 1] as const;

export type ValueType = 'int' | 'real' | 'text' | 'blob';
type ValueOf<T extends ValueType> = T extends 'text' ? string : T extends 'blob' ? Uint8Array : number;

/** The values of a row by name, in the order of their parameters. */
export type RowTypes = Readonly<Record<string, ValueType>>;
export type ValueRow<T extends RowTypes> = { readonly [Name in keyof T]: ValueOf<T[Name]> | null };
type NameIn<T extends RowTypes> = keyof T & string;

/** The parts from which the text of a statement for `width` rows is built. */
export interface RowsText<T extends RowTypes> {
  /** The list of all rows for FROM, as a table named `v`. */
  readonly values: string;
  /** `v.name` is the column of that value in the table `v`. */
  readonly v: Readonly<Record<NameIn<T>, string>>;
  /** A text for each row; `parameter.name` is the parameter of that value. */
  readonly each: (render: (parameter: Readonly<Record<NameIn<T>, string>>, at: number) => string) => string[];
  /** The parameter at a position, from 1, after those of the rows. */
  readonly more: (position: number) => string;
}

/** Builds the same statement for each width, from the widest to 1. */
export interface MultiRowStatement<T extends RowTypes> {
  readonly names: readonly NameIn<T>[];
  readonly widths: readonly number[];
  readonly byWidth: ReadonlyMap<number, Statement>;
}

export function multiRowStatement<const T extends RowTypes>(
  name: string,
  types: T,
  render: (rows: RowsText<T>) => string,
  widths: readonly number[] = WIDTHS,
): MultiRowStatement<T> {
  const byWidth = new Map(widths.map((width) => [width, statement(`${name}-${width}`, render(toText(types, width)))]));
  return { names: Object.keys(types) as NameIn<T>[], widths, byWidth };
}

/** Builds an INSERT of rows whose values are named after their columns; `then` is the SQL after the list of values. */
export function multiRowInsert<const T extends RowTypes>(
  name: string,
  table: string,
  types: T,
  then = '',
): MultiRowStatement<T> {
  const columns = Object.keys(types);
  return multiRowStatement(name, types, ({ each }) => {
    const rows = each((parameter) => `(${columns.map((column) => parameter[column]).join(', ')})`);
    return `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${rows.join(', ')} ${then}`;
  });
}

function toText<T extends RowTypes>(types: T, width: number): RowsText<T> {
  const names = Object.keys(types) as NameIn<T>[];
  const numberFrom = (first: number) => Object.fromEntries(names.map((name, index) => [name, `$${first + index}`]));
  const rows = Array.from({ length: width }, (_, at) => numberFrom(at * names.length + 1));
  const list = rows.map((row) => `(${names.map((name) => renderCast(types[name]!, row[name]!)).join(', ')})`);
  return {
    values: `(VALUES ${list.join(', ')}) AS v`,
    // Both engines name the columns of VALUES column1, column2, ….
    v: Object.fromEntries(names.map((name, index) => [name, `v.column${index + 1}`])) as Record<NameIn<T>, string>,
    each: (render) => rows.map((row, at) => render(row as Record<NameIn<T>, string>, at)),
    more: (position) => `$${width * names.length + position}`,
  };
}

const CASTS: Record<ValueType, string> = { int: 'BIGINT', text: 'TEXT', real: 'DOUBLE PRECISION', blob: 'BYTEA' };

/** PostgreSQL treats a parameter without a cast in a list of values as text. */
function renderCast(type: ValueType, parameter: string): string {
  return `CAST(${parameter} AS ${CASTS[type]})`;
}

export interface RowOptions<T extends RowTypes> {
  /** Parameters after those of the rows. */
  readonly more?: readonly SqlValue[];
  /** Pads a list that fits no width; the last row again without it. */
  readonly filler?: ValueRow<T>;
}

/**
 * Binds the rows to as few statements as possible. A list that fits no width is padded with `filler` or, without it, with its
 * last row, which must be safe to apply twice. One padded statement costs less than several.
 */
export function bindRows<T extends RowTypes>(
  multiRow: MultiRowStatement<T>,
  rows: readonly ValueRow<T>[],
  { more = [], filler }: RowOptions<T> = {},
): BoundStatement[] {
  const statements: BoundStatement[] = [];
  const padding = filler ?? rows.at(-1);
  for (let at = 0; at < rows.length; ) {
    const width = findWidth(multiRow, rows.length - at);
    const parameters: SqlValue[] = [];
    for (let row = at; row < at + width; row += 1) pushValues(multiRow, (rows[row] ?? padding)!, parameters);
    parameters.push(...more);
    statements.push({ statement: multiRow.byWidth.get(width)!, parameters });
    at += width;
  }
  return statements;
}

/** Does the same without padding, for rows that must not be written twice. */
export function bindRowsExactly<T extends RowTypes>(
  multiRow: MultiRowStatement<T>,
  rows: readonly ValueRow<T>[],
): BoundStatement[] {
  const statements: BoundStatement[] = [];
  for (let at = 0; at < rows.length; ) {
    const width = multiRow.widths.find((one) => one <= rows.length - at) ?? 1;
    const parameters: SqlValue[] = [];
    for (const row of rows.slice(at, at + width)) pushValues(multiRow, row, parameters);
    statements.push({ statement: multiRow.byWidth.get(width)!, parameters });
    at += width;
  }
  return statements;
}

function pushValues<T extends RowTypes>({ names }: MultiRowStatement<T>, row: ValueRow<T>, into: SqlValue[]): void {
  for (const name of names) into.push(row[name]);
}

/** The narrowest width that fits all rows, or else the widest. */
function findWidth({ widths }: Pick<MultiRowStatement<RowTypes>, 'widths'>, count: number): number {
  return widths.findLast((width) => width >= count) ?? widths[0] ?? 1;
}
