/**
 * How often a client at an address may be wrong before it has to wait. Only failures count, so that a busy client is
 * never slowed down; and a client's limit at one address says nothing about the same client elsewhere, or anybody could
 * lock it out. Kept in this process: N processes allow N times as much, which guesses no 256-bit secret either.
 */
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { Failure } from '../errors.ts';

export type AttemptKind = 'client' | 'grant' | 'user_code';

export interface AttemptLimits {
  /** Throws `too_many` while this subject has to wait. */
  check(kind: AttemptKind, subject: string): Promise<void>;
  countFailure(kind: AttemptKind, subject: string): Promise<void>;
}

/** Failures a minute. Grants fail honestly (sessions end), and one server may speak for many users. */
const FAILURES_A_MINUTE: Record<AttemptKind, number> = { client: 20, grant: 300, user_code: 10 };
const MAX_SUBJECT_LENGTH = 120;

export function createAttemptLimits(): AttemptLimits {
  const limiters = new Map(
    Object.entries(FAILURES_A_MINUTE).map(([kind, points]) => [
      kind,
      new RateLimiterMemory({ keyPrefix: kind, points, duration: 60 }),
    ]),
  );
  const find = (kind: AttemptKind): RateLimiterMemory => limiters.get(kind) as RateLimiterMemory;
  return {
    async check(kind, subject) {
      const state = await find(kind).get(toKey(subject));
      if (state === null || state.remainingPoints > 0) return;
      const retryAfterSeconds = Math.max(1, Math.ceil(state.msBeforeNext / 1000));
      throw new Failure('too_many', 'Too many failed attempts, try again later', { retryAfterSeconds });
    },
    async countFailure(kind, subject) {
      await find(kind).consume(toKey(subject)).catch(ignoreFull);
    },
  };
}

/** The limiter rejects with its state, no error, once the points are used up: `check` says so on the next request. */
function ignoreFull(rejection: unknown): void {
  if (rejection instanceof Error) throw rejection;
}

function toKey(subject: string): string {
  return subject.slice(0, MAX_SUBJECT_LENGTH);
}
