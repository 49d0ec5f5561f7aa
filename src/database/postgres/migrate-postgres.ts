/** Runs the pending migrations on PostgreSQL, in one process at a time. */
import type pg from 'pg';
import { describeError, Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import { acquireLeaseSql, MAX_CLOCK_SKEW_MS, releaseLeaseSql } from '../leases.ts';
import {
  type AppliedMigration,
  type AppliedMigrations,
  FOUNDATION,
  listAppliedSql,
  listExpansionsSql,
  planMigrations,
  recordStatement,
} from '../migration-plan.ts';
import { renderDdl } from '../portable-sql.ts';
import type { Migration } from '../store.ts';
import { runUnlessStopped } from './cancel-on-stop.ts';

export interface PostgresMigrationOptions {
  readonly pool: pg.Pool;
  readonly migrations: readonly Migration[];
  readonly world: World;
  readonly log: Log;
  /** Ends the wait for another process, and cancels the statement that runs. */
  readonly stopping?: AbortSignal | undefined;
}

const LEASE_NAME = 'migrations';
const LEASE_MS = 60_000;
const WAIT_MS = 200;
const LOCK_WAIT_MS = 500;
/**
 * While a migration waits for the lock of a table, all later queries of that table wait too, also those of older processes. The
 * server cancels an autovacuum that holds the lock only after a wait of `deadlock_timeout` (1 s by default), so this is added to
 * the wait.
 */
const TABLE_LOCK_EXTRA_MS = 1000;
const LIMIT_LOCK_WAIT_SQL = `SELECT set_config('lock_timeout', (setting::integer + ${TABLE_LOCK_EXTRA_MS})::text, true),
   pg_backend_pid() AS pid FROM pg_settings WHERE name = 'deadlock_timeout'`;
/** The pause before the next try, in which waiting queries can use the table. Below the time after which the server ends an idle transaction. */
const TABLE_LOCK_PAUSE_MS = 3000;

/**
 * Runs the pending migrations. Processes that start at the same time take turns by a lease row; each migration commits separately
 * and renews the lease in its transaction, so a process that lost the lease commits nothing.
 */
export async function migratePostgres(options: PostgresMigrationOptions): Promise<void> {
  const client = await options.pool.connect();
  try {
    if ((await findMissing(client, options.migrations)).length === 0) return;
    await createFoundation(client);
    await migrateUnderLease(client, options);
  } finally {
    client.release();
  }
}

/** Whether a program of this kind has used the database before. */
export async function hasMigrations(client: Pick<pg.Pool, 'query'>): Promise<boolean> {
  return (await listPostgresMigrations(client)).required.length > 0;
}

async function findMissing(client: pg.PoolClient, migrations: readonly Migration[]): Promise<Migration[]> {
  return planMigrations(migrations, await listPostgresMigrations(client));
}

const UNDEFINED_TABLE = '42P01';

/** Returns the migrations that this database has; an empty list without tables. */
export async function listPostgresMigrations(client: Pick<pg.Pool, 'query'>): Promise<AppliedMigrations> {
  return {
    required: await listRecords(client, listAppliedSql.text),
    expansions: await listRecords(client, listExpansionsSql.text),
  };
}

async function listRecords(client: Pick<pg.Pool, 'query'>, text: string): Promise<AppliedMigration[]> {
  try {
    const { rows } = await client.query<AppliedMigration>(text);
    return rows;
  } catch (error) {
    if ((error as { code?: string }).code === UNDEFINED_TABLE) return [];
    throw error;
  }
}

// Of two processes that create the same table at once, one gets 23505 from the catalogue, in spite of IF NOT EXISTS.
const CREATED_MEANWHILE = ['23505', '42P07', '42710'];

async function createFoundation(client: pg.PoolClient): Promise<void> {
  for (const text of FOUNDATION)
    await client.query(renderDdl('postgres', text)).catch((error: { code?: string }) => {
      if (!CREATED_MEANWHILE.includes(error.code ?? '')) throw error;
    });
}

async function migrateUnderLease(client: pg.PoolClient, options: PostgresMigrationOptions): Promise<void> {
  const owner = options.world.uuid();
  for (;;) {
    const epoch = await acquire(client, owner, options.world.nowMs());
    const missing = await findMissing(client, options.migrations);
    if (epoch === undefined && missing.length === 0) return;
    if (epoch !== undefined) return await applyAll(client, { ...options, migrations: missing }, { owner, epoch });
    await options.world.sleep(WAIT_MS, options.stopping);
  }
}

interface Held {
  readonly owner: string;
  readonly epoch: number;
}

/** How many tries pass between two log lines: about a minute. */
const LOG_EVERY_TRIES = 12;
const WAITS_FOR_TABLE =
  'The migration waits for the lock of a table: a backup with pg_dump or another long transaction uses it';

/** The error code of a lock timeout. */
const LOCK_NOT_AVAILABLE = '55P03';

function isLockNotAvailable(error: unknown): boolean {
  return (error as { code?: string }).code === LOCK_NOT_AVAILABLE;
}

/** Undefined while another process holds the lease or has locked its row: a migration may take longer than the limit of a statement. */
async function acquire(client: pg.PoolClient, owner: string, nowMs: number): Promise<number | undefined> {
  const endsAtMs = nowMs + LEASE_MS;
  const parameters = [LEASE_NAME, owner, endsAtMs, nowMs, endsAtMs + MAX_CLOCK_SKEW_MS];
  try {
    await client.query('BEGIN');
    await client.query(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`);
    const { rows } = await client.query(acquireLeaseSql.text, parameters);
    await client.query('COMMIT');
    return (rows[0] as { epoch: number } | undefined)?.epoch;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    if (isLockNotAvailable(error)) return undefined;
    throw error;
  }
}

async function applyAll(client: pg.PoolClient, options: PostgresMigrationOptions, held: Held): Promise<void> {
  try {
    for (const migration of options.migrations) await applyOne(client, migration, options, held);
  } finally {
    await client.query(releaseLeaseSql.text, [LEASE_NAME, held.owner, held.epoch]);
  }
}

async function applyOne(
  client: pg.PoolClient,
  migration: Migration,
  options: PostgresMigrationOptions,
  held: Held,
): Promise<void> {
  const { world, log } = options;
  try {
    await client.query('BEGIN');
    // A migration may take long; building an index on a large table must not end at the time limit of a request.
    await client.query('SET LOCAL statement_timeout = 0');
    await renew(client, held, world.nowMs());
    await changeSchema(client, migration, options);
    const { statement, parameters } = recordStatement(migration, world.nowMs());
    await client.query(statement.text, [...parameters]);
    // Renews the lease, which expires during a long migration: another process could take it before the next migration.
    await renew(client, held, world.nowMs());
    await client.query('COMMIT');
    log.debug({ migration: migration.id, name: migration.name }, 'Migrated the database');
  } catch (cause) {
    await client.query('ROLLBACK').catch(() => {});
    const title = `${migration.id}-${migration.name}`;
    throw new Failure(
      'internal',
      `Cannot migrate the database: "${title}" failed: ${describeError(cause)}`,
      {},
      { cause },
    );
  }
}

/** Runs the statements. If one does not get the lock of its table, all locks are released and it starts again with the first. */
async function changeSchema(
  client: pg.PoolClient,
  { id, name, statements }: Migration,
  { pool, world, log, stopping }: PostgresMigrationOptions,
): Promise<void> {
  const { rows } = await client.query<{ pid: number }>(LIMIT_LOCK_WAIT_SQL);
  const cancellation = { pool, stopping, pid: rows[0]!.pid };
  await client.query('SAVEPOINT unchanged');
  for (let tries = 1; ; tries += 1)
    try {
      for (const text of statements) await runUnlessStopped(client, renderDdl('postgres', text), cancellation);
      return;
    } catch (error) {
      if (!isLockNotAvailable(error)) throw error;
      await client.query('ROLLBACK TO SAVEPOINT unchanged');
      if (tries % LOG_EVERY_TRIES === 1) log.warn({ migration: id, name, tries }, WAITS_FOR_TABLE);
      await world.sleep(TABLE_LOCK_PAUSE_MS, stopping);
    }
}

// The row stays locked until the commit, so no other process can take the lease meanwhile, however long it takes; they try again.
async function renew(client: pg.PoolClient, held: Held, nowMs: number): Promise<void> {
  const { rowCount } = await client.query(
    'UPDATE leases SET expires_at_ms = $1 WHERE name = $2 AND owner = $3 AND epoch = $4',
    [nowMs + LEASE_MS, LEASE_NAME, held.owner, held.epoch],
  );
  if (rowCount === 0) throw new Failure('conflict', 'another process has taken the lease');
}
