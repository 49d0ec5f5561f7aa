/** Removes rows whose time is over, a bounded batch at a time: a million expired rows must not stop anybody. */
import { type Statement, type Store, statement } from '../../database/store.ts';

interface Sweep {
  /** How long past its expiry a row is kept. */
  readonly keptMs: number;
  readonly statement: Statement;
}

const DAY_MS = 86_400_000;

/** `ctid` and `rowid` are no portable names; every one of these tables has a key of one column. */
function sweepStatement(table: string, key: string): Statement {
  return statement(
    `sweep-${table}`,
    `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE expires_at_ms < $1 ORDER BY expires_at_ms LIMIT $2)
     RETURNING ${key}`,
  );
}

// An access token of the last refresh outlives the end of its family, and is checked through it.
const sweepFamiliesSql = statement(
  'sweep-token-families',
  `DELETE FROM token_families WHERE family_id IN (
     SELECT f.family_id FROM token_families f WHERE f.expires_at_ms < $1
       AND NOT EXISTS (SELECT 1 FROM access_tokens t WHERE t.family_id = f.family_id)
     ORDER BY f.expires_at_ms LIMIT $2)
   RETURNING family_id`,
);

const SWEEPS: readonly Sweep[] = [
  // A replay is still known as one, and punished, for a day.
  { keptMs: DAY_MS, statement: sweepStatement('authorization_codes', 'code_hash') },
  { keptMs: 0, statement: sweepStatement('access_tokens', 'token_hash') },
  { keptMs: 0, statement: sweepStatement('refresh_tokens', 'token_hash') },
  { keptMs: 0, statement: sweepFamiliesSql },
  { keptMs: 30 * DAY_MS, statement: sweepStatement('personal_tokens', 'token_id') },
  { keptMs: DAY_MS, statement: sweepStatement('device_codes', 'device_hash') },
];

export const SWEEP_BATCH = 500;

/** One batch of each table; whether any of them had more. */
export async function sweepExpired(store: Store, nowMs: number): Promise<boolean> {
  let hasMore = false;
  for (const { keptMs, statement: sweep } of SWEEPS) {
    const rows = await store.write(sweep, [nowMs - keptMs, SWEEP_BATCH]);
    if (rows.length === SWEEP_BATCH) hasMore = true;
  }
  return hasMore;
}
