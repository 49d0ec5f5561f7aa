/**
 * Stores the last notice of each cause, so that each state of a cause is sent at most once an hour, however many processes look. A mail is queued in the
 * transaction of its record, so one process sends it. An event is published before its record, perhaps by several processes: its
 * idempotency key makes these one event.
 */
import {
  type BoundStatement,
  conditionalProcedure,
  nameStatement,
  type Procedure,
  type Statement,
  type Store,
  statement,
} from '../database/store.ts';

/** How notices are sent. Each channel has its own records, so that one that fails does not delay the other. */
export type ChannelName = 'mail' | 'events';

interface Statements {
  readonly record: Statement<{ cause: string }>;
  readonly recordTime: Statement;
  readonly listOpen: Statement<{ cause: string }>;
  readonly forgetFine: Statement;
  readonly forgetTimes: Statement;
  readonly close: Statement;
  readonly closeOpen: Statement;
  readonly last: Statement<{ state: string; sent_at_ms: number }>;
  readonly lastTime: Statement<{ sent_at_ms: number }>;
}

function createStatements(table: string, times: string): Statements {
  return {
    // The second of two processes waits for the row and then finds the state recorded. Each state has its own limit of an hour: that of
    // a beginning does not delay the end of the trouble. A time in the future was written with a wrong clock.
    // The same state is another trouble if it began after $5. With $6 = 1, a trouble whose end was recorded meanwhile does not count.
    record: statement(
      nameStatement('record', table),
      `INSERT INTO ${table} (cause, state, sent_at_ms) VALUES ($1, $2, $3)
       ON CONFLICT (cause) DO UPDATE SET state = excluded.state, sent_at_ms = excluded.sent_at_ms
       WHERE (${table}.state <> excluded.state OR ${table}.sent_at_ms < $5)
         AND NOT (${table}.state = 'fine' AND CAST($6 AS BIGINT) = 1) AND NOT EXISTS
         (SELECT 1 FROM ${times} WHERE cause = $1 AND state = $2 AND sent_at_ms > $4 AND sent_at_ms <= $3) RETURNING cause`,
    ),
    recordTime: statement(
      nameStatement('record', times),
      `INSERT INTO ${times} (cause, state, sent_at_ms) VALUES ($1, $2, $3)
       ON CONFLICT (cause, state) DO UPDATE SET sent_at_ms = excluded.sent_at_ms`,
    ),
    listOpen: statement(
      nameStatement('open', table),
      `SELECT cause FROM ${table} WHERE cause >= $1 AND cause < $2 AND state <> 'fine' ORDER BY cause`,
    ),
    // A row is kept until the next notice about the same cause is allowed.
    forgetFine: statement(
      nameStatement('forget-fine', table),
      `DELETE FROM ${table} WHERE state = 'fine' AND sent_at_ms <= $1`,
    ),
    forgetTimes: statement(nameStatement('forget', times), `DELETE FROM ${times} WHERE sent_at_ms <= $1`),
    close: statement(nameStatement('close', table), `UPDATE ${table} SET state = 'fine' WHERE cause = $1`),
    closeOpen: statement(
      nameStatement('close-open', table),
      `UPDATE ${table} SET state = 'fine' WHERE cause >= $1 AND cause < $2 AND state <> 'fine' AND sent_at_ms <= $3`,
    ),
    last: statement(nameStatement('last', table), `SELECT state, sent_at_ms FROM ${table} WHERE cause = $1`),
    lastTime: statement(
      nameStatement('last', times),
      `SELECT sent_at_ms FROM ${times} WHERE cause = $1 AND state = $2`,
    ),
  };
}

const STATEMENTS: Readonly<Record<ChannelName, Statements>> = {
  mail: createStatements('notices', 'notice_times'),
  events: createStatements('published_notices', 'published_notice_times'),
};

export interface LastNotice {
  /** The state that was sent last. */
  readonly state: string;
  readonly sentAtMs: number;
  /** When the requested state was sent last. */
  readonly sameStateAtMs: number | undefined;
}

export async function findLastNotice(
  store: Store,
  channel: ChannelName,
  { cause, state }: Pick<NoticeRecord, 'cause' | 'state'>,
): Promise<LastNotice | undefined> {
  const { last, lastTime } = STATEMENTS[channel];
  const [[row], [time]] = await Promise.all([store.read(last, [cause]), store.read(lastTime, [cause, state])]);
  return row && { state: row.state, sentAtMs: row.sent_at_ms, sameStateAtMs: time?.sent_at_ms };
}

/** Whether `recordNoticeOnce` would record the notice now; another process may record it first. */
export function isDue(
  last: LastNotice | undefined,
  moment: Omit<NoticeRecord, 'channel' | 'cause' | 'statements'>,
): boolean {
  if (last === undefined) return true;
  const { sameStateAtMs = -Infinity } = last;
  if (last.state === moment.state && last.sentAtMs >= findBeginning(moment)) return false;
  if (last.state === 'fine' && moment.wasOpen === true) return false;
  return sameStateAtMs <= moment.quietUntilMs || sameStateAtMs > moment.nowMs;
}

/** The tolerated clock difference: a process whose clock is ahead may have recorded when the trouble of a sent notice began. */
const CLOCK_SKEW_MS = 2000;

/** A notice that was sent before this time was about an earlier trouble. A beginning in the future was recorded with a wrong clock. */
function findBeginning({ sinceMs = 0, nowMs }: Pick<NoticeRecord, 'sinceMs' | 'nowMs'>): number {
  return sinceMs > nowMs ? 0 : sinceMs - CLOCK_SKEW_MS;
}

export interface NoticeRecord {
  readonly channel: ChannelName;
  readonly cause: string;
  readonly state: string;
  /** When the state began. */
  readonly sinceMs?: number | undefined;
  /**
   * The cause had an open trouble when this one was found. If its end has been recorded since, another process has newer facts, and the
   * next round checks again.
   */
  readonly wasOpen?: boolean | undefined;
  readonly nowMs: number;
  /** If the same state of the cause was sent after this time, the notice must wait. */
  readonly quietUntilMs: number;
  /** Executed in the transaction of the record. */
  readonly statements: readonly BoundStatement[];
}

/** True if this call recorded the notice, with its statements. False if it is not due, or another process recorded it. */
export const recordNoticeOnce: Procedure<NoticeRecord, boolean> = conditionalProcedure(
  import.meta.url,
  'recordNoticeOnce',
  async (transaction, { channel, cause, state, sinceMs, wasOpen, nowMs, quietUntilMs, statements }) => {
    const moment = [nowMs, quietUntilMs, findBeginning({ sinceMs, nowMs }), wasOpen === true ? 1 : 0];
    const recorded = await transaction.run(STATEMENTS[channel].record, [cause, state, ...moment]);
    if (recorded.length === 0) return false;
    await transaction.run(STATEMENTS[channel].recordTime, [cause, state, nowMs]);
    for (const { statement: insert, parameters } of statements) await transaction.run(insert, parameters);
    return true;
  },
);

/** Lists the causes with this prefix whose end was not recorded. */
export async function listOpen(store: Store, channel: ChannelName, prefix: string): Promise<string[]> {
  const rows = await store.read(STATEMENTS[channel].listOpen, [prefix, `${prefix}\u{10ffff}`]);
  return rows.map(({ cause }) => cause);
}

/**
 * Drops the open troubles of a channel that is off now, since the end of a trouble must not be sent where its beginning was not:
 * the causes with this prefix whose notice was sent until then.
 */
export async function forgetOpen(
  store: Store,
  channel: ChannelName,
  [prefix, untilMs]: readonly [prefix: string, untilMs: number],
): Promise<void> {
  await store.write(STATEMENTS[channel].closeOpen, [prefix, `${prefix}\u{10ffff}`, untilMs]);
}

/** Records that a trouble is over, without a notice. */
export async function closeSilently(store: Store, channel: ChannelName, cause: string): Promise<void> {
  await store.write(STATEMENTS[channel].close, [cause]);
}

export async function forgetOld(store: Store, untilMs: number): Promise<void> {
  for (const { forgetFine, forgetTimes } of Object.values(STATEMENTS)) {
    await store.write(forgetFine, [untilMs]);
    await store.write(forgetTimes, [untilMs]);
  }
}
