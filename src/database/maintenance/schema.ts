/** Lists the tables that the migrations create, each after those that it references, for a copy. */
import { DatabaseSync } from 'node:sqlite';
import { FOUNDATION } from '../migration-plan.ts';
import { renderDdl } from '../portable-sql.ts';
import type { Migration } from '../store.ts';

export interface TableShape {
  readonly name: string;
  readonly columns: readonly string[];
  /** The rows that the migrations themselves insert. */
  readonly seedRows: number;
}

/** Returns the tables that the migrations create, each after those that it references. It runs them on an empty database. */
export function describeSchema(migrations: readonly Migration[]): TableShape[] {
  using database = new DatabaseSync(':memory:');
  for (const text of [...FOUNDATION, ...migrations.flatMap((migration) => migration.statements)])
    database.exec(renderDdl('sqlite', text));
  const names = database
    .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`)
    .all()
    .map((row) => String(row.name));
  return sortByReference(database, names).map((name) => ({
    name,
    columns: listColumns(database, name),
    seedRows: Number(database.prepare(`SELECT COUNT(*) AS count FROM ${name}`).get()?.count),
  }));
}

function listColumns(database: DatabaseSync, table: string): string[] {
  const rows = database.prepare('SELECT name FROM pragma_table_info(?1) ORDER BY cid').all(table);
  return rows.map((row) => String(row.name));
}

function sortByReference(database: DatabaseSync, names: readonly string[]): string[] {
  const listParents = database.prepare('SELECT "table" AS parent FROM pragma_foreign_key_list(?1)');
  const sorted = new Set<string>();
  const visit = (name: string, path: readonly string[]): void => {
    if (sorted.has(name) || path.includes(name)) return;
    for (const row of listParents.all(name)) visit(String(row.parent), [...path, name]);
    sorted.add(name);
  };
  for (const name of names) visit(name, []);
  return [...sorted];
}
