/**
 * Checks that older programs keep running beside a migration: it may only add, and must not refuse anything that they write.
 * Only statements that are known to be safe pass; each other statement is named with the reason.
 */
import type { Migration } from '../../../src/database/store.ts';

type Rule = (match: RegExpExecArray, own: Added) => string | undefined;

/** The objects that the migration itself has added so far, which no older program uses. */
interface Added {
  readonly tables: Set<string>;
  readonly columns: Set<string>;
}

const CASCADES = /ON DELETE (?:CASCADE|SET NULL)/i;
const TEXT_OR_COMMENT = /'(?:[^']|'')*'|--[^\n]*/g;

const RULES: readonly [pattern: RegExp, rule: Rule][] = [
  [/^CREATE TABLE (\w+) \((.*)\)$/i, createTable],
  [/^CREATE (UNIQUE )?INDEX \w+ ON (\w+)/i, createIndex],
  [/^ALTER TABLE (\w+) ADD (?:COLUMN )?(\w+) (.*)$/i, addColumn],
  [/^(?:INSERT INTO|DELETE FROM) (\w+)/i, ([, table = ''], { tables }) => refuseUnlessOwn(table, tables)],
  [/^UPDATE (\w+) SET (.*)$/i, update],
];

/** Returns the reasons why older programs could fail beside the migration; empty for an expansion. */
export function findBreaks({ statements }: Pick<Migration, 'statements'>): string[] {
  const own: Added = { tables: new Set(), columns: new Set() };
  return statements.flatMap(splitStatements).flatMap((text) => {
    const reason = judge(text, own);
    return reason === undefined ? [] : [`${reason}: ${text.slice(0, 80)}`];
  });
}

/** One line each, without comments and quoted texts. */
function splitStatements(statements: string): string[] {
  const text = statements.replace(TEXT_OR_COMMENT, (match) => (match.startsWith('--') ? ' ' : "''"));
  return text
    .split(';')
    .map((statement) => statement.replace(/\s+/g, ' ').trim())
    .filter((statement) => statement !== '');
}

function judge(text: string, own: Added): string | undefined {
  for (const [pattern, rule] of RULES) {
    const match = pattern.exec(text);
    if (match !== null) return rule(match, own);
  }
  return 'an expansion may only create tables, indexes and columns, and fill what it created';
}

function createTable([, table = '', columns = '']: RegExpExecArray, { tables }: Added): string | undefined {
  tables.add(table.toLowerCase());
  const references = columns.match(/REFERENCES (\w+)[^,]*/gi) ?? [];
  const blocking = references.find((reference) => !isOwnReference(reference, tables) && !CASCADES.test(reference));
  return blocking && 'a row of the new table would keep an older program from deleting the row that it refers to';
}

function isOwnReference(reference: string, tables: ReadonlySet<string>): boolean {
  return tables.has((/REFERENCES (\w+)/i.exec(reference)?.[1] ?? '').toLowerCase());
}

function createIndex([, unique, table = '']: RegExpExecArray, { tables }: Added): string | undefined {
  if (unique === undefined || tables.has(table.toLowerCase())) return undefined;
  return 'a unique index on a table that exists could refuse rows of older programs';
}

function addColumn([, table = '', column = '', rest = '']: RegExpExecArray, own: Added): string | undefined {
  own.columns.add(`${table}.${column}`.toLowerCase());
  if (own.tables.has(table.toLowerCase())) return undefined;
  if (/NOT NULL/i.test(rest) && !/DEFAULT (?!NULL)/i.test(rest))
    return 'older programs leave the column out: it needs a default';
  if (/UNIQUE|PRIMARY KEY|CHECK/i.test(rest)) return 'a condition on the column could refuse rows of older programs';
  if (/REFERENCES/i.test(rest) && !CASCADES.test(rest))
    return 'the reference would keep an older program from deleting rows';
  return undefined;
}

function refuseUnlessOwn(table: string, tables: ReadonlySet<string>): string | undefined {
  return tables.has(table.toLowerCase()) ? undefined : 'rows that older programs use must stay as they are';
}

function update([, table = '', assignments = '']: RegExpExecArray, { tables, columns }: Added): string | undefined {
  const [changed = ''] = assignments.split(/ FROM | WHERE /i, 1);
  const names = [...changed.matchAll(/(?:^|, )(\w+) =/g)].map(([, column]) => `${table}.${column}`.toLowerCase());
  if (tables.has(table.toLowerCase()) || (names.length > 0 && names.every((name) => columns.has(name))))
    return undefined;
  return 'rows that older programs use must stay as they are';
}
