/** Opens a store without changing it, for `trivet doctor`. */
import type { Log } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import { type AppliedMigrations, planMigrations } from '../migration-plan.ts';
import { checkParameters } from '../portable-sql.ts';
import { listPostgresMigrations } from '../postgres/migrate-postgres.ts';
import { openPostgresEngine } from '../postgres/postgres-engine.ts';
import { checkPostgresServer, findReadOnlyReason } from '../postgres/postgres-server.ts';
import { listSqliteMigrations } from '../sqlite/migrate-sqlite.ts';
import { openSqliteConnection } from '../sqlite/sqlite-connection.ts';
import type { Migration, Row, SqlValue, Statement, Store } from '../store.ts';
import { checkNotCopied } from './copied-store.ts';
import { databaseFileOf, hasDatabase, type StoreOptions } from './open-store.ts';

export interface InspectedStore extends Pick<Store, 'engine' | 'read' | 'readCached' | 'clockAheadMs'> {
  /** The migrations that the service would apply, in its order. */
  readonly missing: readonly Migration[];
  /** Why the server of the database accepts no writes; undefined if it does, and for SQLite. */
  readonly readOnlyReason: 'standby' | 'read-only' | undefined;
  [Symbol.asyncDispose](): Promise<void>;
}

export type InspectOptions = Pick<StoreOptions, 'dataDir' | 'databaseUrl' | 'migrations'> & {
  readonly log: Log;
  readonly world: World;
};

/** Returns undefined where this program has no store yet. Throws when the store is newer than this program. */
export async function inspectStore(options: InspectOptions): Promise<InspectedStore | undefined> {
  const found = options.databaseUrl === undefined ? inspectSqlite(options) : await inspectPostgres(options);
  if (found === undefined) return undefined;
  try {
    if (found.applied.required.length === 0) {
      await found.close();
      return undefined;
    }
    const missing = planMigrations(options.migrations, found.applied);
    const read = createReader(found);
    const { engine, readOnlyReason, clockAheadMs } = found;
    const reading = { engine, read, readCached: read, clockAheadMs };
    return { ...reading, missing, readOnlyReason, [Symbol.asyncDispose]: found.close };
  } catch (error) {
    await found.close();
    throw error;
  }
}

interface Found {
  readonly engine: Store['engine'];
  readonly applied: AppliedMigrations;
  readonly readOnlyReason?: InspectedStore['readOnlyReason'];
  readonly clockAheadMs: Store['clockAheadMs'];
  readonly run: (statement: Statement<object>, parameters: readonly SqlValue[]) => Row[] | Promise<Row[]>;
  readonly close: () => Promise<void>;
}

function inspectSqlite({ dataDir }: InspectOptions): Found | undefined {
  checkNotCopied(dataDir);
  if (!hasDatabase(dataDir)) return undefined;
  const connection = openSqliteConnection(databaseFileOf(dataDir), 'read');
  const close = async () => connection.close();
  try {
    const applied = listSqliteMigrations(connection);
    const run: Found['run'] = (...bound) => connection.run(...bound);
    return { engine: 'sqlite', applied, clockAheadMs: () => 0, run, close };
  } catch (error) {
    connection.close();
    throw error;
  }
}

async function inspectPostgres({ databaseUrl = '', log, world }: InspectOptions): Promise<Found> {
  const engine = openPostgresEngine({ databaseUrl, poolSize: 1, log, world });
  try {
    await checkPostgresServer(engine.pool, log);
    await engine.clock.measure();
    const applied = await listPostgresMigrations(engine.pool);
    const readOnlyReason = await findReadOnlyReason(engine.pool);
    const run: Found['run'] = (...bound) => engine.read(...bound);
    const clockAheadMs = () => engine.clockAheadMs();
    return { engine: 'postgres', applied, readOnlyReason, clockAheadMs, run, close: () => engine.close() };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

function createReader({ run }: Found): Store['read'] {
  return async <R extends object>(statement: Statement<R>, parameters: readonly SqlValue[] = []) => {
    checkParameters(statement.name, parameters);
    return (await run(statement, parameters)) as R[];
  };
}
