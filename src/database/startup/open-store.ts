/** Opens the store, SQLite or PostgreSQL, and runs the pending migrations. */
import { closeSync, openSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { World } from '../../world.ts';
import type { Engine } from '../engine.ts';
import { hasFile } from '../has-file.ts';
import { createIdSource, createStripeTable } from '../id-source.ts';
import { checkParameters, isReadOnly } from '../portable-sql.ts';
import { migrateSqlite } from '../sqlite/migrate-sqlite.ts';
import { openSqliteEngine } from '../sqlite/sqlite-engine.ts';
import type { BoundStatement, Migration, Row, SqlValue, Statement, Store, WriteOptions } from '../store.ts';
import { withStoreClock } from '../store-clock.ts';
import type { StoreMetrics } from '../store-metrics.ts';
import { createTopicWatcher, markChangedStatement } from '../topics.ts';
import { checkNotCopied } from './copied-store.ts';
import { ensureDataDir } from './data-dir.ts';

export interface StoreOptions {
  /** Folder of the SQLite database, created if missing. Not used with a `databaseUrl`. */
  readonly dataDir: string;
  /** PostgreSQL; without it, SQLite. */
  readonly databaseUrl?: string | undefined;
  readonly poolSize?: number;
  readonly migrations: readonly Migration[];
  /** Whether to create the database where this program has none; `refuse` throws instead. */
  readonly ifAbsent?: 'create' | 'refuse';
  /** Whether to refuse an embedded database that was copied to another one; `open` opens it. */
  readonly ifCopied?: 'open' | 'refuse';
  readonly log: Log;
  readonly world: World;
  /** Times and counts writes, if given. */
  readonly metrics?: Metrics;
  /** Aborts the waits of migrations. */
  readonly stopping?: AbortSignal;
}

const DATABASE_FILE = 'trivet.db';

export function databaseFileOf(dataDir: string): string {
  return join(dataDir, DATABASE_FILE);
}

/** Whether the folder has an embedded database. */
export function hasDatabase(dataDir: string): boolean {
  return hasFile(databaseFileOf(dataDir));
}

/** Opens the database, migrates its schema and returns the store. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const engine =
    options.databaseUrl === undefined ? openSqlite(options) : await openPostgres(options.databaseUrl, options);
  return createStore(engine, options, await openStoreMetrics(engine, options.metrics));
}

/** Commands have no metrics, since no server scrapes them, and do not load the metrics library. */
async function openStoreMetrics(engine: Engine, metrics: Metrics | undefined): Promise<StoreMetrics> {
  if (metrics === undefined) return { time: (work) => work() };
  return (await import('../store-metrics.ts')).createStoreMetrics(metrics, engine);
}

function openSqlite({ dataDir, migrations, ifAbsent, ifCopied, log, world }: StoreOptions): Engine {
  if (ifCopied !== 'open') checkNotCopied(dataDir);
  if (ifAbsent === 'refuse' && !hasDatabase(dataDir)) throw refuseAbsent(`the folder "${resolve(dataDir)}"`);
  ensureDataDir(dataDir);
  const path = databaseFileOf(dataDir);
  createDatabaseFile(path);
  migrateSqlite({ path, migrations, nowMs: world.nowMs(), log });
  return openSqliteEngine({ path, log });
}

/** An existing folder may be open to others; SQLite gives its log the permissions of this file. */
function createDatabaseFile(path: string): void {
  try {
    closeSync(openSync(path, 'a', 0o600));
  } catch (error) {
    throw new Failure('invalid', `Cannot open the database "${path}": ${describe(error)}`, {}, { cause: error });
  }
}

/** Only programs that use the PostgreSQL client load it: all others start sooner. */
async function openPostgres(
  databaseUrl: string,
  { poolSize = 10, migrations, ifAbsent, log, world, stopping }: StoreOptions,
): Promise<Engine> {
  const { hasMigrations, migratePostgres } = await import('../postgres/migrate-postgres.ts');
  const { openPostgresEngine } = await import('../postgres/postgres-engine.ts');
  const { checkPostgresServer } = await import('../postgres/postgres-server.ts');
  const engine = openPostgresEngine({ databaseUrl, poolSize, log, world });
  try {
    await checkPostgresServer(engine.pool, log);
    await engine.clock.measure();
    if (ifAbsent === 'refuse' && !(await hasMigrations(engine.pool)))
      throw refuseAbsent('the database of DATABASE_URL');
    await migratePostgres({ pool: engine.pool, migrations, world: withStoreClock(world, engine), log, stopping });
    return engine;
  } catch (error) {
    await engine.close();
    if (error instanceof Failure) throw error;
    throw new Failure('unavailable', `Cannot open the database: ${describe(error)}`, {}, { cause: error });
  }
}

function refuseAbsent(place: string): Failure {
  return new Failure(
    'invalid',
    `Cannot open the store: ${place} has none yet; ` +
      'set TRIVET_DATA_DIR or DATABASE_URL to those of the service, start the service there once with "trivet serve", ' +
      'or sign in to a running service with "trivet login"',
    { isAbsent: true },
  );
}

// A refused connection to a name with several addresses is an AggregateError without a message.
function describe(error: unknown): string {
  const { message, code } = error as { message?: string; code?: string };
  return message || code || String(error);
}

function createStore(engine: Engine, { log, world }: StoreOptions, { time }: StoreMetrics): Store {
  const topics = createTopicWatcher(engine, log);
  const ids = createIdSource(createStripeTable(engine), world);
  const checkRead = createReadCheck();

  const writeAll = async (statements: readonly BoundStatement[], options?: WriteOptions): Promise<Row[][]> => {
    if (statements.length === 0) return [];
    for (const { statement, parameters } of statements) checkParameters(statement.name, parameters);
    return await time(() => engine.writeAll(statements, options));
  };

  return {
    engine: engine.name,
    read: async <R extends object>(statement: Statement<R>, parameters: readonly SqlValue[] = []) => {
      checkRead(statement, parameters);
      return (await engine.read(statement, parameters)) as R[];
    },
    readAll: async (statements) => {
      for (const { statement, parameters } of statements) checkRead(statement, parameters);
      return statements.length === 0 ? [] : await engine.readAll(statements);
    },
    readCached: async <R extends object>(statement: Statement<R>, parameters: readonly SqlValue[] = []) => {
      checkRead(statement, parameters);
      return (await engine.readCached(statement, parameters)) as R[];
    },
    write: async <R extends object>(statement: Statement<R>, parameters: readonly SqlValue[] = []) => {
      const [rows] = await writeAll([{ statement, parameters }]);
      return rows as R[];
    },
    writeAll,
    call: (procedure, input) => time(() => engine.call(procedure, input)),
    watch: (topic, listener) => topics.watch(topic, listener),
    makeIds: (count) => ids.makeIds(count),
    clockAheadMs: () => engine.clockAheadMs(),
    markChanged: markChangedStatement,
    [Symbol.asyncDispose]: async () => {
      topics.close();
      await engine.close();
    },
  };
}

/** A text is checked once: its name never means another text. */
function createReadCheck() {
  const readOnly = new Set<string>();
  return ({ name, text }: Statement<object>, parameters: readonly SqlValue[]): void => {
    if (!readOnly.has(name) && !isReadOnly(text))
      throw new Failure('internal', `Cannot read with "${name}": it is not a reading statement`);
    readOnly.add(name);
    checkParameters(name, parameters);
  };
}
