/** Translates the few differences between SQLite and PostgreSQL: types in DDL, parameters, read-only checks. */
import { Failure } from '../errors.ts';
import type { SqlValue } from './store.ts';

/** The few differences of the two engines, so that every statement is written once. */

export type EngineName = 'sqlite' | 'postgres';

// A text column of PostgreSQL sorts by the database's locale by default; SQLite sorts by bytes.
const TYPES: Record<EngineName, Record<string, string>> = {
  sqlite: { INT: 'INTEGER', REAL: 'REAL', TEXT: 'TEXT', BLOB: 'BLOB' },
  postgres: { INT: 'BIGINT', REAL: 'DOUBLE PRECISION', TEXT: 'TEXT COLLATE "C"', BLOB: 'BYTEA' },
};

/** A statement of a migration with the types of an engine. */
export function renderDdl(engine: EngineName, text: string): string {
  const typed = text.replace(/\{(\w+)\}/g, (_, word: string) => {
    const type = TYPES[engine][word];
    if (type === undefined) throw new Failure('internal', `Cannot read the migration: {${word}} is not a type word`);
    return type;
  });
  const isTable = /^\s*CREATE\s+TABLE\b/i.test(typed);
  return engine === 'sqlite' && isTable ? `${typed.replace(/[\s;]+$/, '')} STRICT` : typed;
}

const QUOTED_OR_PARAMETER = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\$(\d+)/g;

/**
 * `$1` → `?1`, which is how SQLite numbers a parameter; text in quotes and comments stays. Parameters that come once each, in
 * their order, become `?`: SQLite keeps a list of the numbered ones, and node:sqlite searches it for each value that it binds,
 * which takes longer than the statement when there are hundreds.
 */
export function toSqliteParameters(text: string): string {
  const numbers = [...text.matchAll(QUOTED_OR_PARAMETER)].flatMap(([, number]) => number ?? []);
  const areInOrder = numbers.every((number, index) => Number(number) === index + 1);
  return text.replace(QUOTED_OR_PARAMETER, (match, number: string | undefined) => {
    if (number === undefined) return match;
    return areInOrder ? '?' : `?${number}`;
  });
}

/** Whether `read` may run the statement. PostgreSQL would silently run a write there. */
export function isReadOnly(text: string): boolean {
  return (
    /^\s*(?:SELECT|WITH|VALUES)\b/i.test(text) && !/\b(?:INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM)\b/i.test(text)
  );
}

/** Refuses values that only one engine would accept, or that one would silently change. */
export function checkParameters(name: string, parameters: readonly SqlValue[]): void {
  for (let index = 0; index < parameters.length; index += 1) {
    const value = parameters[index];
    if (value === null || value instanceof Uint8Array) continue;
    if (typeof value === 'string') {
      if (value.includes('\0'))
        throw new Failure('invalid', 'Cannot store a text: it must not contain the character NUL');
      continue;
    }
    if (typeof value !== 'number' || Number.isNaN(value))
      throw new Failure('internal', `Cannot run "${name}": $${index + 1} must be a string, number, bytes or null`);
  }
}
