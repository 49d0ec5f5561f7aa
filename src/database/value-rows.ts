import { type SqlValue, type Statement, type Step, statement } from './store.ts';

/**
 * Statements over many rows at once, in the portable subset: a list of values as long as one of a few widths, so that
 * every width is prepared once. Both engines name the columns of `VALUES` column1, column2, ….
 */
const WIDTHS = [64, 16, 4, 1] as const;

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
  readonly byWidth: ReadonlyMap<number, Statement<R>>;
}

export function wideStatement<R extends object>(
  name: string,
  render: (width: number) => string,
  widths: readonly number[] = WIDTHS,
): WideStatement<R> {
  return { byWidth: new Map(widths.map((width) => [width, statement<R>(`${name}_${width}`, render(width))])) };
}

/** The steps that run it over all rows. `more` are parameters after those of the rows. */
export function wideSteps(
  wide: WideStatement<object>,
  rows: readonly (readonly SqlValue[])[],
  more: readonly SqlValue[] = [],
): Step[] {
  const steps: Step[] = [];
  let at = 0;
  while (at < rows.length) {
    const width = [...wide.byWidth.keys()].find((candidate) => candidate <= rows.length - at) ?? 1;
    const parameters = rows.slice(at, at + width).flat();
    steps.push({ statement: wide.byWidth.get(width) as Step['statement'], parameters: [...parameters, ...more] });
    at += width;
  }
  return steps;
}
