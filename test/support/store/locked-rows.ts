/** Makes statements of a store wait for rows that another transaction has changed but not committed; PostgreSQL only. */
import { rmSync } from 'node:fs';
import pg from 'pg';
import type { Store } from '../../../src/database/store.ts';
import { waitUntil } from '../basics/wait-until.ts';
import { createStorePlace, openTestStore } from './engines.ts';

export interface LockedRows {
  readonly store: Store;
  /** Changes rows, and commits once this many transactions of `act` wait. Resolves when `act` has ended. */
  readonly change: (sql: string, act: () => Promise<unknown>, waiting?: number) => Promise<void>;
}

const BLOCKED =
  'SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0';

export async function withLockedRows(run: (rows: LockedRows) => Promise<void>): Promise<void> {
  const place = await createStorePlace('postgres');
  try {
    await using store = await openTestStore(place);
    // The list of processes stays the same within a transaction, so another connection reads it.
    const [locker, watcher] = [new pg.Client(place.databaseUrl), new pg.Client(place.databaseUrl)];
    await Promise.all([locker.connect(), watcher.connect()]);
    const change: LockedRows['change'] = async (sql, act, waiting = 1) => {
      await locker.query('BEGIN');
      await locker.query(sql);
      const acting = act();
      await waitUntil(async () => (await watcher.query(BLOCKED)).rows.length >= waiting);
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
