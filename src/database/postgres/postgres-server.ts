/** Refuses a PostgreSQL server with a wrong encoding or version, and warns about settings that may lose commits. */
import type pg from 'pg';
import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';

interface ServerSettings {
  readonly version: string;
  readonly encoding: string;
  readonly synchronous_commit: string | null;
  readonly fsync: string | null;
}

// `true` returns null for an unknown setting: other servers that speak the protocol lack some.
const SETTINGS = `SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding,
  current_setting('synchronous_commit', true) AS synchronous_commit, current_setting('fsync', true) AS fsync`;

const READ_ONLY = `SELECT CASE WHEN pg_is_in_recovery() THEN 'standby'
  WHEN current_setting('transaction_read_only') = 'on' THEN 'read-only' END AS reason`;

/** Returns why this server accepts no writes; undefined if it does. On a standby every transaction is read-only. */
export async function findReadOnlyReason(pool: Pick<pg.Pool, 'query'>): Promise<'standby' | 'read-only' | undefined> {
  const { rows } = await pool.query<{ reason: 'standby' | 'read-only' | null }>(READ_ONLY);
  return rows[0]?.reason ?? undefined;
}

const OLDEST = 150_000;

/** Refuses a database whose encoding cannot hold every text, and warns when its settings may lose acknowledged commits. */
export async function checkPostgresServer(pool: pg.Pool, log: Log): Promise<void> {
  const { rows } = await pool.query<ServerSettings>(SETTINGS);
  const [server] = rows;
  if (server === undefined) return;
  if (server.encoding !== 'UTF8')
    throw new Failure('invalid', `Cannot open the database: its encoding must be UTF8, got "${server.encoding}"`);
  if (Number(server.version) < OLDEST) log.warn({ version: server.version }, 'PostgreSQL is older than 15');
  const { synchronous_commit, fsync } = server;
  if (synchronous_commit === 'off' || fsync === 'off')
    log.warn({ synchronous_commit, fsync }, 'PostgreSQL acknowledges writes before they are on the disk');
}
