import { type BoundStatement, type SqlValue, type Statement, statement } from './store.ts';

/**
 * Statements over many rows at once, in the portable subset: a list of values as long as one of a few widths, so that
 * every width is prepared once. Both engines name the columns of `VALUES` column1, column2, ….
 */
const WIDTHS = [64, 32, 16, 8, 4, 2, 1] as const;

export type ValueType = 'int' | 'text' | 'real';
const CASTS: Record<ValueType, string> = { int: 'BIGINT', text: 'TEXT', real: 'DOUBLE PRECISION' };

/** `(CAST($1 AS BIGINT), …), …`: PostgreSQL takes a bare parameter in a list of values for text. */
export function renderValueRows(types: readonly ValueType[], width: number): string {
  const row = (at: number) =>
    `(${types.map((type, column) => `CAST($${at * types.length + column + 1} AS ${CASTS[type]})`).join(', ')})`;
  return Array.from({ length: width }, (_, at) => row(at)).join(', ');
}

/** `($1, $2), …` for the values of an INSERT, whose columns say the types. */
export function renderInsertRows(columns: number, width: number): string {
  const row = (at: number) =>
    `(${Array.from({ length: columns }, (_, column) => `$${at * columns + column + 1}`).join(', ')})`;
  return Array.from({ length: width }, (_, at) => row(at)).join(', ');
}

/** One statement in every width, the widest first, 1 the last; `render` gets the width and makes the text. */
export interface WideStatement<R extends object> {
  readonly widths: readonly number[];
  readonly byWidth: ReadonlyMap<number, Statement<R>>;
}

export function wideStatement<R extends object>(
  name: string,
  render: (width: number) => string,
  widths: readonly number[] = WIDTHS,
): WideStatement<R> {
  return { widths, byWidth: new Map(widths.map((width) => [width, statement<R>(`${name}_${width}`, render(width))])) };
}

/**
 * The statements that run it over all rows. A list that fits no width is padded with `filler` or, without it, with its
 * last row again, which is safe where a row changes nothing the second time: one statement costs less than several.
 * `more` are parameters after those of the rows.
 */
export function wideSteps(
  wide: WideStatement<object>,
  rows: readonly (readonly SqlValue[])[],
  more: readonly SqlValue[] = [],
  filler: readonly SqlValue[] = rows.at(-1) ?? [],
): BoundStatement[] {
  const statements: BoundStatement[] = [];
  for (let at = 0; at < rows.length; ) {
    const width = findWidth(wide, rows.length - at);
    const parameters: SqlValue[] = [];
    for (let row = at; row < at + width; row += 1) parameters.push(...(rows[row] ?? filler));
    parameters.push(...more);
    statements.push({ statement: wide.byWidth.get(width) as BoundStatement['statement'], parameters });
    at += width;
  }
  return statements;
}

/** The same without padding: for rows that must not come twice. */
export function exactSteps(wide: WideStatement<object>, rows: readonly (readonly SqlValue[])[]): BoundStatement[] {
  const statements: BoundStatement[] = [];
  for (let at = 0; at < rows.length; ) {
    const width = wide.widths.find((one) => one <= rows.length - at) ?? 1;
    const parameters = rows.slice(at, at + width).flat();
    statements.push({ statement: wide.byWidth.get(width) as BoundStatement['statement'], parameters });
    at += width;
  }
  return statements;
}

/** The narrowest width that fits all rows, or else the widest. */
function findWidth({ widths }: WideStatement<object>, count: number): number {
  return widths.findLast((width) => width >= count) ?? widths[0] ?? 1;
}
