/** Decides which migrations are pending, and refuses a store that is newer than the program. */
import { createHash } from 'node:crypto';
import { Failure } from '../errors.ts';
import { LEASE_TABLE } from './leases.ts';
import { type BoundStatement, type Migration, type Row, type Statement, statement } from './store.ts';

export interface AppliedMigration {
  readonly id: number;
  readonly name: string;
  readonly checksum: string;
}

/**
 * Created before any migration, by the first process to start. Older programs can run on a store with newer expansions (migrations
 * that only add). These have a separate table, since an older program refuses an unknown migration in `schema_migrations`.
 */
export const FOUNDATION: readonly string[] = [
  describeRecord('schema_migrations'),
  describeRecord('schema_expansions'),
  LEASE_TABLE,
];

function describeRecord(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
     id {INT} NOT NULL PRIMARY KEY,
     name {TEXT} NOT NULL,
     checksum {TEXT} NOT NULL,
     applied_at_ms {INT} NOT NULL
   )`;
}

export const listAppliedSql: Statement<AppliedMigration> = statement(
  'migration-list',
  'SELECT id, name, checksum FROM schema_migrations ORDER BY id',
);

/** The table is missing in a database that only programs without expansions have migrated. */
export const listExpansionsSql: Statement<AppliedMigration> = statement(
  'migration-list-expansions',
  'SELECT id, name, checksum FROM schema_expansions ORDER BY id',
);

const recordRequiredSql: Statement<Row> = statement(
  'migration-record',
  'INSERT INTO schema_migrations (id, name, checksum, applied_at_ms) VALUES ($1, $2, $3, $4)',
);

const recordExpansionSql: Statement<Row> = statement(
  'migration-record-expansion',
  'INSERT INTO schema_expansions (id, name, checksum, applied_at_ms) VALUES ($1, $2, $3, $4)',
);

export function recordStatement(migration: Migration, nowMs: number): BoundStatement {
  return {
    statement: migration.isExpansion ? recordExpansionSql : recordRequiredSql,
    parameters: [migration.id, migration.name, checksumOf(migration), nowMs],
  };
}

export function checksumOf(migration: Migration): string {
  return createHash('sha256').update(migration.statements.join(';\n')).digest('hex');
}

/** The migrations that a database has. */
export interface AppliedMigrations {
  /** Migrations that every program on the database must know. */
  readonly required: readonly AppliedMigration[];
  readonly expansions: readonly AppliedMigration[];
}

/** The missing migrations, in the order of `known`. Throws when the database and this program do not belong together. */
export function planMigrations(known: readonly Migration[], { required, expansions }: AppliedMigrations): Migration[] {
  const knownById = new Map(known.map((migration) => [migration.id, migration]));
  if (knownById.size < known.length)
    throw new Failure('internal', 'Cannot migrate: two migrations have the same number');
  for (const row of required) checkKnown(row, knownById.get(row.id));
  for (const row of [...required, ...expansions]) checkUnchanged(row, knownById.get(row.id));
  const appliedIds = new Set([...required, ...expansions].map((row) => row.id));
  return known.filter((migration) => !appliedIds.has(migration.id));
}

function checkKnown(row: AppliedMigration, migration: Migration | undefined): void {
  if (migration === undefined)
    throw new Failure(
      'conflict',
      `Cannot open the database: it is newer than this program, which does not know the migration "${titleOf(row)}"`,
    );
}

function checkUnchanged(row: AppliedMigration, migration: Migration | undefined): void {
  if (migration !== undefined && checksumOf(migration) !== row.checksum)
    throw new Failure(
      'conflict',
      `Cannot open the database: the migration "${titleOf(row)}" has changed since it ran there (checksums differ)`,
    );
}

function titleOf({ id, name }: AppliedMigration): string {
  return `${id}-${name}`;
}
