/** Decides how long expired sessions, codes, tokens and audit events are kept, and deletes them. */
import { type Statement, type Store, statement } from '../../database/store.ts';
import {
  deleteOldSql,
  repeatBatches,
  SWEEP_WITHOUT_PAUSES,
  type SweepContext,
  sweepEach,
} from '../../database/sweep.ts';
import { MAX_SKEW_MS } from '../../steady-clock.ts';
import { SESSION_IDLE_MS } from '../accounts/session-store.ts';
import { FORGET_AFTER_MS } from '../accounts/sign-in-throttle.ts';

const DAY_MS = 86_400_000;
/** Twice the longest time between two sweeps: the sweeper runs every minute, but waits ten minutes for a trusted clock. */
const SWEPT_AGAIN_MS = 20 * 60_000;

// The access token of the last refresh outlives its family's end, and is checked against the family's row.
const deleteFamiliesSql = statement(
  'sweep-token-families',
  `DELETE FROM token_families WHERE family_id IN (
     SELECT f.family_id FROM token_families f WHERE f.expires_at_ms <= $1
       AND NOT EXISTS (SELECT 1 FROM access_tokens t WHERE t.family_id = f.family_id)
     ORDER BY f.expires_at_ms LIMIT $2)
   RETURNING family_id`,
);

// A code that was not redeemed is useless once it has expired. A redeemed code is useful only while its token family exists,
// since a second use ends the family. Only codes that expired recently are read; otherwise each sweep would read those that are
// kept for a day. `family_id` is compared again, since PostgreSQL may wait here for an exchange that sets it.
const deleteUselessCodesSql = statement(
  'sweep-useless-codes',
  `DELETE FROM authorization_codes WHERE (code_hash, coalesce(family_id, '')) IN (
     SELECT c.code_hash, coalesce(c.family_id, '') FROM authorization_codes c
     WHERE c.expires_at_ms <= $1 AND c.expires_at_ms > $1 - ${SWEPT_AGAIN_MS}
       AND (SELECT f.family_id FROM token_families f WHERE f.family_id = c.family_id) IS NULL
     ORDER BY c.expires_at_ms LIMIT $2)
   RETURNING code_hash`,
);

interface Retention {
  readonly deleteSql: Statement;
  /** How long a row is kept after the time in its column; absent: as long as events of the audit log. */
  readonly keptMs?: number;
}

const expired = (table: string, key: string, keptMs = 0): Retention => ({
  deleteSql: deleteOldSql({ table, key, time: 'expires_at_ms' }),
  keptMs,
});

const RETENTION = {
  sessions: {
    deleteSql: deleteOldSql({ table: 'sessions', key: 'id', time: 'last_seen_at_ms' }),
    keptMs: SESSION_IDLE_MS,
  },
  // One-time tokens (`one-time-token-store.ts`); the table has their former name.
  tickets: expired('tickets', 'token_hash'),
  attempts: {
    deleteSql: deleteOldSql({ table: 'sign_in_attempts', key: 'subject', time: 'last_at_ms' }),
    keptMs: FORGET_AFTER_MS,
  },
  auditEvents: { deleteSql: deleteOldSql({ table: 'audit_events', key: 'id', time: 'at_ms' }) },
  // Kept a day after its end, so that a code used a second time is detected and revokes its tokens.
  codes: expired('authorization_codes', 'code_hash', DAY_MS),
  uselessCodes: { deleteSql: deleteUselessCodesSql, keptMs: MAX_SKEW_MS },
  accessTokens: expired('access_tokens', 'token_hash'),
  refreshTokens: expired('refresh_tokens', 'token_hash'),
  families: { deleteSql: deleteFamiliesSql, keptMs: 0 },
  personalTokens: expired('personal_tokens', 'token_id', 30 * DAY_MS),
  // Kept a day, so that a device that polls late gets `expired_token`.
  deviceCodes: expired('device_codes', 'device_hash', DAY_MS),
  signingKeys: expired('signing_keys', 'kid'),
} as const satisfies Record<string, Retention>;

export type Swept = Record<keyof typeof RETENTION, number>;

export const RETENTION_KINDS = Object.keys(RETENTION);

export interface Sweep {
  readonly nowMs: number;
  /** For how many days an event of the audit log is kept. */
  readonly auditDays: number;
}

/** Deletes all rows that are past their retention, and returns the number of each kind. */
export async function sweepEnded(
  store: Store,
  { nowMs, auditDays }: Sweep,
  sweeping: SweepContext = SWEEP_WITHOUT_PAUSES,
): Promise<Swept> {
  const sweeps = Object.entries<Retention>(RETENTION).map(([kind, { deleteSql, keptMs = auditDays * DAY_MS }]) => {
    const batch = async (limit: number) => (await store.write(deleteSql, [nowMs - keptMs, limit])).length;
    return [kind, () => repeatBatches(sweeping, batch)] as const;
  });
  return await sweepEach(sweeping, Object.fromEntries(sweeps) as Record<keyof Swept, () => Promise<number>>);
}
