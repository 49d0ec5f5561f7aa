/** How attempts did, by owner and minute: written in sums by each process, read by the overview. */
import { type Row, type Statement, type Store, statement } from '../../../database/store.ts';
import { renderValueRows, wideStatement, wideSteps } from '../../../database/value-rows.ts';

/** Attempts are counted by their duration: below the first of these, from it to the second, and so on, and longer ones. */
export const DURATION_EDGES_MS = [10, 30, 100, 300, 1000, 3000, 10_000] as const;

const MINUTE_MS = 60_000;
export const KEEP_MINUTES_MS = 24 * 60 * MINUTE_MS;
const COUNTS = ['accepted', 'failed', ...DURATION_EDGES_MS.map((edge) => `below_${edge}`), 'longer'] as const;
const TYPES = ['int', 'int', ...COUNTS.map(() => 'int' as const)] as const;

/** What happened to one hook in one minute. */
export interface HookMinute {
  readonly hookId: number;
  /** Since 1970. */
  readonly minute: number;
  readonly accepted: number;
  readonly failed: number;
  /** As many as there are edges, and one more. */
  readonly durations: readonly number[];
}

const sums = COUNTS.map((_, index) => `SUM(v.column${index + 3})`).join(', ');
const additions = COUNTS.map((name) => `${name} = delivery_minutes.${name} + excluded.${name}`).join(', ');

// In one order, so that two processes that add to the same rows do not wait for each other in a ring.
const addMinutes = wideStatement<Row>(
  'delivery_minutes_add',
  (width) =>
    `INSERT INTO delivery_minutes (owner_id, minute, ${COUNTS.join(', ')})
     SELECT q.owner_id, v.column2, ${sums}
     FROM (VALUES ${renderValueRows(TYPES, width)}) AS v JOIN endpoint_queue q ON q.hook_id = v.column1
     WHERE true GROUP BY q.owner_id, v.column2 ORDER BY q.owner_id, v.column2
     ON CONFLICT (owner_id, minute) DO UPDATE SET ${additions}`,
);

/** Fills up a statement: no hook has this id. */
const NO_HOOK = TYPES.map(() => 0);

export async function addDeliveryMinutes(store: Store, minutes: readonly HookMinute[]): Promise<void> {
  const rows = minutes.map(({ hookId, minute, accepted, failed, durations }) => [
    hookId,
    minute,
    accepted,
    failed,
    ...durations,
  ]);
  for (const step of wideSteps(addMinutes, rows, [], NO_HOOK)) await store.write(step.statement, step.parameters);
}

type MinuteRow = Row & { readonly minute: number };

// A sum of integers is a NUMERIC on PostgreSQL.
const columns = COUNTS.map((name) => `CAST(SUM(${name}) AS BIGINT) AS ${name}`).join(', ');
const minutesOfAll: Statement<MinuteRow> = statement(
  'delivery_minutes_of_all',
  `SELECT minute, ${columns} FROM delivery_minutes WHERE minute >= $1 GROUP BY minute`,
);
const minutesOfOwner: Statement<MinuteRow> = statement(
  'delivery_minutes_of_owner',
  `SELECT minute, ${columns} FROM delivery_minutes WHERE owner_id = $2 AND minute >= $1 GROUP BY minute`,
);

export type DeliveryMinute = Omit<HookMinute, 'hookId'>;

/** The minutes from this one on that had attempts, in no order; of these owners, or of all. */
export async function listDeliveryMinutes(
  store: Store,
  ownerIds: readonly string[] | 'all',
  fromMinute: number,
): Promise<DeliveryMinute[]> {
  const pages =
    ownerIds === 'all'
      ? [await store.read(minutesOfAll, [fromMinute])]
      : await Promise.all(ownerIds.map((ownerId) => store.read(minutesOfOwner, [fromMinute, ownerId])));
  return pages.flat().map((row) => ({
    minute: row.minute,
    accepted: Number(row.accepted),
    failed: Number(row.failed),
    durations: COUNTS.slice(2).map((name) => Number(row[name])),
  }));
}

const forgetMinutes: Statement<Row> = statement(
  'delivery_minutes_forget',
  'DELETE FROM delivery_minutes WHERE minute < $1',
);

export async function forgetDeliveryMinutes(store: Store, nowMs: number): Promise<void> {
  await store.write(forgetMinutes, [minuteOf(nowMs - KEEP_MINUTES_MS)]);
}

export function minuteOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS);
}
