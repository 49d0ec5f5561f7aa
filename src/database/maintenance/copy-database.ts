/** Copies every table of one database into another in one transaction (`trivet migrate`). */
import { describeError, Failure, isFailure } from '../../errors.ts';
import { describeSqliteError, isSqliteError } from '../sqlite/sqlite-connection.ts';
import type { Migration, SqlValue } from '../store.ts';
import { describeSchema, type TableShape } from './schema.ts';
import type { TableConnection } from './table-connection.ts';

export interface CopiedTable {
  readonly table: string;
  readonly rows: number;
}

export interface CopyOptions {
  readonly source: TableConnection;
  readonly target: TableConnection;
  /** The migrations of this program; both databases have run them. */
  readonly migrations: readonly Migration[];
  readonly report: (table: string, rows: number) => void;
}

/** Not copied: the target has run the same migrations and keeps its own records of them. */
const NOT_COPIED = ['schema_migrations', 'schema_expansions'];
/** The lease of the target's own migration is not copied. All others are, since their epochs must keep rising. */
const LEASES = 'leases';

/**
 * Copies every table, each row as it is, in one transaction of the target. Refuses a target that is in use, and a source with
 * tables or columns that this program does not know.
 */
export async function copyDatabase({ source, target, migrations, report }: CopyOptions): Promise<CopiedTable[]> {
  await checkAllKnown(source, migrations);
  const copied = describeSchema(migrations).filter((table) => !NOT_COPIED.includes(table.name));
  for (const table of copied) await nameTable(table, () => checkUnused(target, table));
  // Rows that the migrations inserted are deleted: the source has their current state. Child tables come first.
  for (const table of copied.toReversed()) await nameTable(table, () => target.run(`DELETE FROM ${table.name}`, []));
  const results: CopiedTable[] = [];
  for (const table of copied) {
    const rows = await nameTable(table, () => copyTable(source, target, table, report));
    results.push({ table: table.name, rows });
  }
  for (const { table, rows } of results)
    await nameTable({ name: table }, () => checkCounts(source, target, table, rows));
  await target.commit().catch((error: unknown) => {
    throw describeFault('Cannot store the copy', error);
  });
  return results;
}

/** Names the table in an error of one of the databases. */
async function nameTable<Result>({ name }: Pick<TableShape, 'name'>, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw isFailure(error) ? error : describeFault(`Cannot copy the table "${name}"`, error);
  }
}

function describeFault(what: string, cause: unknown): Failure {
  const reason = isSqliteError(cause) ? describeSqliteError(cause) : describeError(cause);
  return new Failure('internal', `${what}: ${reason}`, {}, { cause });
}

const EXPANSIONS: TableShape = { name: 'schema_expansions', columns: ['id', 'name'], seedRows: 0 };

/** A newer release may have added tables or columns to the source. An older program runs on it, but would not copy them. */
async function checkAllKnown(source: TableConnection, migrations: readonly Migration[]): Promise<void> {
  const known = new Set(migrations.map(({ id }) => id));
  const unknown: string[] = [];
  for await (const rows of source.readRows(EXPANSIONS))
    for (const [id, name] of rows) if (!known.has(Number(id))) unknown.push(`${Number(id)}-${String(name)}`);
  if (unknown.length > 0)
    throw new Failure(
      'conflict',
      `Cannot copy: the source is newer than this program, which does not know "${unknown.join('", "')}" of its migrations ` +
        'and would leave out what they added; copy with the newer program',
    );
}

async function checkUnused(target: TableConnection, { name, seedRows }: TableShape): Promise<void> {
  const count = await target.countRows(name);
  if (count > seedRows && name !== LEASES)
    throw new Failure('conflict', `Cannot copy: the target must be unused, and its table "${name}" has ${count} rows`, {
      isTargetUsed: true,
    });
}

async function copyTable(
  source: TableConnection,
  target: TableConnection,
  table: TableShape,
  report: CopyOptions['report'],
): Promise<number> {
  let count = 0;
  for await (const rows of source.readRows(table)) {
    for (const some of splitRows(rows, table.columns.length)) await insertRows(target, table, some);
    count += rows.length;
    report(table.name, count);
  }
  return count;
}

/** The most parameters of a statement that both engines accept. */
const MAX_PARAMETERS = 10_000;

function splitRows(rows: readonly SqlValue[][], columns: number): SqlValue[][][] {
  const size = Math.max(1, Math.floor(MAX_PARAMETERS / columns));
  return Array.from({ length: Math.ceil(rows.length / size) }, (_, index) =>
    rows.slice(index * size, (index + 1) * size),
  );
}

async function insertRows(
  target: TableConnection,
  { name, columns }: TableShape,
  rows: readonly SqlValue[][],
): Promise<void> {
  const names = columns.map((column) => `"${column}"`).join(', ');
  const tuples = rows.map(
    (_, row) => `(${columns.map((__, column) => `$${row * columns.length + column + 1}`).join(', ')})`,
  );
  await target.run(`INSERT INTO ${name} (${names}) VALUES ${tuples.join(', ')}`, rows.flat());
}

async function checkCounts(
  source: TableConnection,
  target: TableConnection,
  table: string,
  rows: number,
): Promise<void> {
  const counts = [await source.countRows(table), await target.countRows(table)];
  if (counts.some((count) => count !== rows))
    throw new Failure(
      'internal',
      `Cannot copy: "${table}" has ${counts.join(' rows in the source and in the target ')}`,
    );
}
