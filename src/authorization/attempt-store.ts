/**
 * Counts attempts to prove who one is. An attempt is counted before it is judged and forgiven when it succeeds: many
 * guesses sent at once are many counts, not one.
 */
import { type Procedure, procedure, type Store, statement } from '../database/store.ts';
import { Failure } from '../errors.ts';
import { type AttemptSubject, debtAfter, FORGET_AFTER_MS, failuresOf, waitAfter } from './sign-in/back-off.ts';

interface AttemptRow {
  readonly debt_ms: number;
  readonly last_at_ms: number;
}

const readAttempts = statement<AttemptRow>(
  'read-sign-in-attempts',
  'SELECT debt_ms, last_at_ms FROM sign_in_attempts WHERE subject = $1',
);
const countAttempt = statement(
  'count-sign-in-attempt',
  `INSERT INTO sign_in_attempts (subject, debt_ms, last_at_ms) VALUES ($1, $2, $3)
   ON CONFLICT (subject) DO UPDATE SET debt_ms = excluded.debt_ms, last_at_ms = excluded.last_at_ms`,
);
const forgiveAttempts = statement('forgive-sign-in-attempts', 'DELETE FROM sign_in_attempts WHERE subject = $1');
const forgiveOne = statement(
  'forgive-one-sign-in-attempt',
  'UPDATE sign_in_attempts SET debt_ms = debt_ms - $2 WHERE subject = $1 AND debt_ms >= $2',
);
const sweepAttempts = statement<{ subject: string }>(
  'sweep-sign-in-attempts',
  `DELETE FROM sign_in_attempts WHERE subject IN
     (SELECT subject FROM sign_in_attempts WHERE last_at_ms <= $1 ORDER BY last_at_ms LIMIT $2) RETURNING subject`,
);

interface Attempt {
  readonly subjects: readonly AttemptSubject[];
  readonly nowMs: number;
}

/** Counts the attempt for every subject and answers 0, or counts nothing and answers how long to wait. */
export const reserveAttempt: Procedure<Attempt, number> = procedure(
  import.meta.url,
  'reserveAttempt',
  async (transaction, { subjects, nowMs }) => {
    const debts: number[] = [];
    let waitMs = 0;
    for (const { key, policy } of subjects) {
      const [row] = await transaction.run(readAttempts, [key]);
      // A clock that was set back must not make anybody wait for it to come round again (S14).
      const agoMs = row === undefined ? 0 : Math.max(0, nowMs - row.last_at_ms);
      const debtMs = debtAfter(row?.debt_ms ?? 0, agoMs);
      waitMs = Math.max(waitMs, waitAfter(failuresOf(debtMs, policy), policy) - agoMs);
      debts.push(debtMs + policy.forgetOneMs);
    }
    if (waitMs > 0) return waitMs;
    for (const [index, { key }] of subjects.entries())
      await transaction.run(countAttempt, [key, debts[index] ?? 0, nowMs]);
    return 0;
  },
);

/** Throws `too_many` with the time to wait while any subject has to. */
export async function checkAttempt(store: Store, attempt: Attempt): Promise<void> {
  const waitMs = await store.call(reserveAttempt, attempt);
  if (waitMs === 0) return;
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  throw new Failure('too_many', `Too many attempts: try again in ${retryAfterSeconds} seconds`, { retryAfterSeconds });
}

/** After a success: the account's failures are forgotten, and the address gets this one attempt back. */
export async function forgiveAttempt(store: Store, subjects: readonly AttemptSubject[]): Promise<void> {
  const accounts = subjects.slice(0, -1);
  const address = subjects.slice(-1);
  await store.writeAll([
    ...accounts.map(({ key }) => ({ statement: forgiveAttempts, parameters: [key] })),
    ...address.map(({ key, policy }) => ({ statement: forgiveOne, parameters: [key, policy.forgetOneMs] })),
  ]);
}

/** Removes at most `limit` counts that are forgotten anyway; returns how many. */
export async function sweepForgottenAttempts(store: Store, nowMs: number, limit: number): Promise<number> {
  return (await store.write(sweepAttempts, [nowMs - FORGET_AFTER_MS, limit])).length;
}
