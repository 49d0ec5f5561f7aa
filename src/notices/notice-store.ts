/** The last notice about each cause. Each process tries to record a notice, and the one whose statement succeeds sends it. */
import { type BoundStatement, conditionalProcedure, type Procedure, type Store, statement } from '../database/store.ts';

// Of two processes, the second waits for the row and then finds the state recorded. A recorded time in the future was written by
// a wrong clock, and does not count.
const recordNoticeSql = statement<{ cause: string }>(
  'record-notice',
  `INSERT INTO notices (cause, state, sent_at_ms) VALUES ($1, $2, $3)
   ON CONFLICT (cause) DO UPDATE SET state = excluded.state, sent_at_ms = excluded.sent_at_ms
   WHERE notices.state <> excluded.state AND (notices.sent_at_ms <= $4 OR notices.sent_at_ms > $3) RETURNING cause`,
);
const openNoticesSql = statement<{ cause: string }>(
  'open-notices',
  `SELECT cause FROM notices WHERE cause >= $1 AND cause < $2 AND state <> 'fine' ORDER BY cause`,
);
// A row is kept until another notice about the same cause may be sent.
const forgetFineSql = statement('forget-fine-notices', `DELETE FROM notices WHERE state = 'fine' AND sent_at_ms <= $1`);
const closeSql = statement('close-notice', `UPDATE notices SET state = 'fine' WHERE cause = $1`);

const lastNoticeSql = statement<{ state: string; sent_at_ms: number }>(
  'last-notice',
  'SELECT state, sent_at_ms FROM notices WHERE cause = $1',
);

export interface LastNotice {
  readonly state: string;
  readonly sentAtMs: number;
}

export async function findLastNotice(store: Store, cause: string): Promise<LastNotice | undefined> {
  const [row] = await store.read(lastNoticeSql, [cause]);
  return row && { state: row.state, sentAtMs: row.sent_at_ms };
}

/** What `recordNoticeOnce` would decide now; another process may record the notice first. */
export function isDue(
  last: LastNotice | undefined,
  { state, nowMs, quietUntilMs }: Omit<NoticeRecord, 'cause' | 'statements'>,
) {
  return last === undefined || (last.state !== state && (last.sentAtMs <= quietUntilMs || last.sentAtMs > nowMs));
}

export interface NoticeRecord {
  readonly cause: string;
  readonly state: string;
  readonly nowMs: number;
  /** In the past: a cause whose last notice is later than this has to wait. */
  readonly quietUntilMs: number;
  /** Executed in the transaction of the record. */
  readonly statements: readonly BoundStatement[];
}

/** True if this call recorded the notice, with its statements. False if it is not due, or another process recorded it. */
export const recordNoticeOnce: Procedure<NoticeRecord, boolean> = conditionalProcedure(
  import.meta.url,
  'recordNoticeOnce',
  async (transaction, { cause, state, nowMs, quietUntilMs, statements }) => {
    const recorded = await transaction.run(recordNoticeSql, [cause, state, nowMs, quietUntilMs]);
    if (recorded.length === 0) return false;
    for (const { statement: insert, parameters } of statements) await transaction.run(insert, parameters);
    return true;
  },
);

/** The causes with this prefix whose end was not recorded. */
export async function listOpen(store: Store, prefix: string): Promise<string[]> {
  return (await store.read(openNoticesSql, [prefix, `${prefix}\u{10ffff}`])).map(({ cause }) => cause);
}

/** Records that a trouble is over, without a notice. */
export async function closeSilently(store: Store, cause: string): Promise<void> {
  await store.write(closeSql, [cause]);
}

export async function forgetOld(store: Store, untilMs: number): Promise<void> {
  await store.write(forgetFineSql, [untilMs]);
}
