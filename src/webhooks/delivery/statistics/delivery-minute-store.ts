/** Stores counts of attempts and their outcomes by hook and minute. */
import { type Row, type Statement, type Store, statement } from '../../../database/store.ts';
import { deleteOldSql, repeatBatches, type SweepContext } from '../../../database/sweep.ts';
import { bindRows, multiRowStatement } from '../../../database/value-rows.ts';

/** Upper bounds of the histogram of durations, in milliseconds; a last bucket counts longer attempts. */
export const DURATION_EDGES_MS = [10, 30, 100, 300, 1000, 3000, 10_000] as const;

const MINUTE_MS = 60_000;
export const KEEP_MINUTES_MS = 24 * 60 * MINUTE_MS;
const COUNTS = ['accepted', 'failed', ...DURATION_EDGES_MS.map((edge) => `below_${edge}` as const), 'longer'] as const;
const COUNT_TYPES = Object.fromEntries(COUNTS.map((name) => [name, 'int'])) as Record<(typeof COUNTS)[number], 'int'>;

/** The attempts to one hook in one minute. */
export interface HookMinute {
  readonly hookId: number;
  /** Minutes since 1970. */
  readonly minute: number;
  readonly accepted: number;
  readonly failed: number;
  /** The histogram: one count for each bucket, one more than there are edges. */
  readonly durations: readonly number[];
}

const additions = COUNTS.map((name) => `${name} = delivery_minutes.${name} + excluded.${name}`).join(', ');

// Rows are added in a fixed order, so that two processes that add to the same rows do not deadlock.
const addMinutesSql = multiRowStatement(
  'delivery-minutes-add',
  { hookId: 'int', minute: 'int', ...COUNT_TYPES },
  ({ values, v }) =>
    `INSERT INTO delivery_minutes (owner_id, minute, ${COUNTS.join(', ')})
     SELECT q.owner_id, ${v.minute}, ${COUNTS.map((name) => `SUM(${v[name]})`).join(', ')}
     FROM ${values} JOIN endpoint_queue q ON q.hook_id = ${v.hookId}
     WHERE true GROUP BY q.owner_id, ${v.minute} ORDER BY q.owner_id, ${v.minute}
     ON CONFLICT (owner_id, minute) DO UPDATE SET ${additions}`,
);

const toCounts = (counts: readonly number[]) =>
  Object.fromEntries(COUNTS.map((name, index) => [name, counts[index] ?? 0])) as Record<
    (typeof COUNTS)[number],
    number
  >;

/** Fills the unused rows of a statement: no hook has this id. */
const NO_HOOK = { hookId: 0, minute: 0, ...toCounts([]) };

export async function addDeliveryMinutes(store: Store, minutes: readonly HookMinute[]): Promise<void> {
  const rows = minutes.map(({ hookId, minute, accepted, failed, durations }) => ({
    hookId,
    minute,
    ...toCounts([accepted, failed, ...durations]),
  }));
  for (const { statement, parameters } of bindRows(addMinutesSql, rows, { filler: NO_HOOK }))
    await store.write(statement, parameters);
}

type MinuteRow = Row & { readonly minute: number };

// On PostgreSQL a sum of integers is NUMERIC, hence the cast.
const columns = COUNTS.map((name) => `CAST(SUM(${name}) AS BIGINT) AS ${name}`).join(', ');
const minutesOfAllSql: Statement<MinuteRow> = statement(
  'delivery-minutes-of-all',
  `SELECT minute, ${columns} FROM delivery_minutes WHERE minute >= $1 GROUP BY minute`,
);
const minutesOfOwnerSql: Statement<MinuteRow> = statement(
  'delivery-minutes-of-owner',
  `SELECT minute, ${columns} FROM delivery_minutes WHERE owner_id = $2 AND minute >= $1 GROUP BY minute`,
);

export type DeliveryMinute = Omit<HookMinute, 'hookId'>;

/** The minutes with attempts from this one on, in no particular order; of these owners, or of all. */
export async function listDeliveryMinutes(
  store: Store,
  ownerIds: readonly string[] | 'all',
  fromMinute: number,
): Promise<DeliveryMinute[]> {
  const pages =
    ownerIds === 'all'
      ? [await store.read(minutesOfAllSql, [fromMinute])]
      : await Promise.all(ownerIds.map((ownerId) => store.read(minutesOfOwnerSql, [fromMinute, ownerId])));
  return pages.flat().map((row) => ({
    minute: row.minute,
    accepted: Number(row.accepted),
    failed: Number(row.failed),
    durations: COUNTS.slice(2).map((name) => Number(row[name])),
  }));
}

const forgetMinutesSql = deleteOldSql({ table: 'delivery_minutes', key: 'owner_id, minute', time: 'minute' });

export async function forgetDeliveryMinutes(store: Store, nowMs: number, sweeping: SweepContext): Promise<number> {
  const lastMinute = minuteOf(nowMs - KEEP_MINUTES_MS) - 1;
  return await repeatBatches(
    sweeping,
    async (limit) => (await store.write(forgetMinutesSql, [lastMinute, limit])).length,
  );
}

export function minuteOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS);
}
