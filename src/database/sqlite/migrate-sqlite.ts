/** Runs the pending migrations on SQLite. */
import { describeError, Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import {
  type AppliedMigrations,
  FOUNDATION,
  listAppliedSql,
  listExpansionsSql,
  planMigrations,
  recordStatement,
} from '../migration-plan.ts';
import { renderDdl } from '../portable-sql.ts';
import type { Migration } from '../store.ts';
import { openSqliteConnection, type SqliteConnection } from './sqlite-connection.ts';

export interface SqliteMigrationOptions {
  readonly path: string;
  readonly migrations: readonly Migration[];
  readonly nowMs: number;
  readonly log: Log;
}

/**
 * Runs the pending migrations in one transaction. The write lock of the file serves as the lease: a second process waits for it,
 * 10 s at most, and then finds no pending migration.
 */
export function migrateSqlite(options: SqliteMigrationOptions): void {
  const connection = openSqliteConnection(options.path, 'write');
  try {
    if (isUpToDate(connection, options.migrations)) return;
    connection.execute('BEGIN IMMEDIATE');
    applyMissing(connection, options);
    connection.execute('COMMIT');
  } finally {
    connection.close();
  }
}

// Read without the write lock, so that a command can start while the service writes.
function isUpToDate(connection: SqliteConnection, migrations: readonly Migration[]): boolean {
  return hasTable(connection, 'schema_migrations') && planMigrations(migrations, listApplied(connection)).length === 0;
}

/** Returns the migrations that this database has; an empty list without tables. */
export function listSqliteMigrations(connection: SqliteConnection): AppliedMigrations {
  return hasTable(connection, 'schema_migrations') ? listApplied(connection) : { required: [], expansions: [] };
}

function hasTable(connection: SqliteConnection, name: string): boolean {
  const text = 'SELECT 1 AS found FROM sqlite_schema WHERE name = $1';
  return connection.run({ name: 'migration_table', text }, [name]).length > 0;
}

function listApplied(connection: SqliteConnection): AppliedMigrations {
  return {
    required: connection.run(listAppliedSql, []) as never,
    expansions: hasTable(connection, 'schema_expansions') ? (connection.run(listExpansionsSql, []) as never) : [],
  };
}

function applyMissing(connection: SqliteConnection, { migrations, nowMs, log }: SqliteMigrationOptions): void {
  for (const text of FOUNDATION) connection.execute(renderDdl('sqlite', text));
  for (const migration of planMigrations(migrations, listApplied(connection))) {
    applyOne(connection, migration);
    const { statement, parameters } = recordStatement(migration, nowMs);
    connection.run(statement, parameters);
    log.debug({ migration: migration.id, name: migration.name }, 'Migrated the database');
  }
}

function applyOne(connection: SqliteConnection, migration: Migration): void {
  try {
    for (const text of migration.statements) connection.execute(renderDdl('sqlite', text));
  } catch (error) {
    const cause = error instanceof Failure ? error.cause : error;
    const title = `${migration.id}-${migration.name}`;
    throw new Failure(
      'internal',
      `Cannot migrate the database: "${title}" failed: ${describeError(cause)}`,
      {},
      { cause },
    );
  }
}
