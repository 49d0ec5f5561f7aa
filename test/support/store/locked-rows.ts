/** A statement of a store that waits for rows which another transaction has changed and not committed yet; PostgreSQL alone. */
import { rmSync } from 'node:fs';
import pg from 'pg';
import type { Store } from '../../../src/database/store.ts';
import { waitUntil } from '../basics/wait-until.ts';
import { createStorePlace, openTestStore } from './engines.ts';

export interface LockedRows {
  readonly store: Store;
  /** Changes rows, and commits once `act` waits for one of them. Resolves when `act` has ended. */
  readonly change: (sql: string, act: () => Promise<unknown>) => Promise<void>;
}

const BLOCKED = 'SELECT pid FROM pg_stat_activity WHERE $1::int = ANY(pg_blocking_pids(pid))';

export async function withLockedRows(run: (rows: LockedRows) => Promise<void>): Promise<void> {
  const place = await createStorePlace('postgres');
  try {
    await using store = await openTestStore(place);
    // The list of processes stays the same within a transaction, so another connection reads it.
    const [locker, watcher] = [new pg.Client(place.databaseUrl), new pg.Client(place.databaseUrl)];
    await Promise.all([locker.connect(), watcher.connect()]);
    const change: LockedRows['change'] = async (sql, act) => {
      const { rows } = await locker.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      await locker.query('BEGIN');
      await locker.query(sql);
      const acting = act();
      await waitUntil(async () => (await watcher.query(BLOCKED, [rows[0]!.pid])).rows[0]);
      await locker.query('COMMIT');
      await acting;
    };
    try {
      await run({ store, change });
    } finally {
      await Promise.all([locker.end(), watcher.end()]);
    }
  } finally {
    rmSync(place.dataDir, { recursive: true, force: true });
  }
}
