import { createHash } from 'node:crypto';
import { Failure } from '../errors.ts';
import { LEASE_TABLE } from './leases.ts';
import { type Migration, type Row, type Statement, statement } from './store.ts';

/** Which migrations are still to run, and which databases this program must leave alone. */

export interface AppliedMigration {
  readonly id: number;
  readonly name: string;
  readonly checksum: string;
}

/** Created before any migration, by the first process to start. */
export const FOUNDATION: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS schema_migrations (
     id {INT} NOT NULL PRIMARY KEY,
     name {TEXT} NOT NULL,
     checksum {TEXT} NOT NULL,
     applied_at_ms {INT} NOT NULL
   )`,
  LEASE_TABLE,
];

export const listAppliedStatement: Statement<AppliedMigration> = statement(
  'migration_list',
  'SELECT id, name, checksum FROM schema_migrations ORDER BY id',
);

export const recordMigrationStatement: Statement<Row> = statement(
  'migration_record',
  'INSERT INTO schema_migrations (id, name, checksum, applied_at_ms) VALUES ($1, $2, $3, $4)',
);

export function checksumOf(migration: Migration): string {
  return createHash('sha256').update(migration.statements.join(';\n')).digest('hex');
}

export function recordParameters(migration: Migration, nowMs: number): (string | number)[] {
  return [migration.id, migration.name, checksumOf(migration), nowMs];
}

/** The missing migrations, in the order of `known`. Throws when the database and this program do not belong together. */
export function planMigrations(known: readonly Migration[], applied: readonly AppliedMigration[]): Migration[] {
  const knownById = new Map(known.map((migration) => [migration.id, migration]));
  if (knownById.size < known.length)
    throw new Failure('internal', 'Cannot migrate: two migrations have the same number');
  for (const row of applied) checkApplied(row, knownById.get(row.id));
  const appliedIds = new Set(applied.map((row) => row.id));
  return known.filter((migration) => !appliedIds.has(migration.id));
}

function checkApplied(row: AppliedMigration, migration: Migration | undefined): void {
  const title = `${row.id}-${row.name}`;
  if (migration === undefined)
    throw new Failure(
      'conflict',
      `Cannot open the database: it is newer than this program, which does not know the migration "${title}"`,
    );
  if (checksumOf(migration) !== row.checksum)
    throw new Failure(
      'conflict',
      `Cannot open the database: the migration "${title}" was another one when it ran there`,
    );
}
