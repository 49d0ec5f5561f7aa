/**
 * Counts attempts to sign in before they are checked, so that guesses sent at once all count; `sign-in-throttle.ts` decides
 * the wait. A success takes its attempt back (`forgiveAttempt`).
 */
import { type Procedure, procedure, type Store, statement, type Transaction } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { type AttemptSubject, drain, FORGET_AFTER_MS, failuresOf, waitOfAttempt } from './sign-in-throttle.ts';

interface AttemptRow {
  /** The level of the leaky bucket at `last_at_ms`, in milliseconds. */
  readonly debt_ms: number;
  readonly last_at_ms: number;
}

const readAttemptsSql = statement<AttemptRow>(
  'read-sign-in-attempts',
  'SELECT debt_ms, last_at_ms FROM sign_in_attempts WHERE subject = $1',
);
const countAttemptSql = statement(
  'count-sign-in-attempt',
  `INSERT INTO sign_in_attempts (subject, debt_ms, last_at_ms) VALUES ($1, $2, $3)
   ON CONFLICT (subject) DO UPDATE SET debt_ms = excluded.debt_ms, last_at_ms = excluded.last_at_ms`,
);
const forgiveAttemptsSql = statement('forgive-sign-in-attempts', 'DELETE FROM sign_in_attempts WHERE subject = $1');
const forgiveOneSql = statement(
  'forgive-one-sign-in-attempt',
  'UPDATE sign_in_attempts SET debt_ms = debt_ms - $2 WHERE subject = $1 AND debt_ms >= $2',
);
interface Attempt {
  readonly subjects: readonly AttemptSubject[];
  readonly nowMs: number;
}

/** Counts the attempt in all its buckets and returns 0, or counts nothing and returns the wait in milliseconds. */
export const reserveAttempt: Procedure<Attempt, number> = procedure(
  import.meta.url,
  'reserveAttempt',
  async (transaction, { subjects, nowMs }) => {
    const counts = [];
    for (const subject of subjects) counts.push(await readCount(transaction, subject, nowMs));
    const waitMs = waitOfAttempt(counts);
    for (const { key, policy, levelMs, isAhead } of counts) {
      if (waitMs === 0) await transaction.run(countAttemptSql, [key, levelMs + policy.forgetOneMs, nowMs]);
      // The clock was set back: the wait must not last until the clock reaches the old time again.
      else if (isAhead) await transaction.run(countAttemptSql, [key, levelMs, nowMs]);
    }
    return waitMs;
  },
);

async function readCount(transaction: Transaction, subject: AttemptSubject, nowMs: number) {
  const [row] = await transaction.run(readAttemptsSql, [subject.key]);
  const agoMs = row === undefined ? 0 : Math.max(0, nowMs - row.last_at_ms);
  // The sweep may not have deleted the row yet.
  const isForgotten = agoMs >= FORGET_AFTER_MS;
  const levelMs = isForgotten ? 0 : drain(row?.debt_ms ?? 0, agoMs);
  const isAhead = row !== undefined && row.last_at_ms > nowMs;
  return { ...subject, levelMs, agoMs, isAhead, failures: failuresOf(levelMs, subject.policy) };
}

/** Counts the attempt, or throws `too_many` with the time to wait while any bucket demands a wait. */
export async function checkAttempt(store: Store, attempt: Attempt): Promise<void> {
  const waitMs = await store.call(reserveAttempt, attempt);
  if (waitMs === 0) return;
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  throw new Failure('too_many', `Too many attempts: try again in ${retryAfterSeconds} seconds`, { retryAfterSeconds });
}

/** After a success: empties the buckets of this account at this network, and takes this attempt back from shared buckets. */
export async function forgiveAttempt(store: Store, subjects: readonly AttemptSubject[]): Promise<void> {
  await store.writeAll(
    subjects.map(({ key, policy, isClearedOnSuccess }) =>
      isClearedOnSuccess
        ? { statement: forgiveAttemptsSql, parameters: [key] }
        : { statement: forgiveOneSql, parameters: [key, policy.forgetOneMs] },
    ),
  );
}

/** Takes back an attempt that was never checked. Earlier failures still count. */
export async function takeBackAttempt(store: Store, subjects: readonly AttemptSubject[]): Promise<void> {
  await store.writeAll(
    subjects.map(({ key, policy }) => ({ statement: forgiveOneSql, parameters: [key, policy.forgetOneMs] })),
  );
}
