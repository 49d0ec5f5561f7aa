/**
 * How long a guesser waits. Three subjects count at once: an account from one address (a few free tries), the account
 * from anywhere (more, and a short wait only, so that a stranger cannot lock its owner out), and the address (a host
 * that walks through accounts). Pure: the store keeps the counts.
 */
import { createHash } from 'node:crypto';
import { networkOf } from '../../http/client-address.ts';

export interface BackOffPolicy {
  /** Failures without any wait. */
  readonly free: number;
  readonly longestWaitMs: number;
  /** After each such time one failure is forgotten. */
  readonly forgetOneMs: number;
}

export interface AttemptSubject {
  /** What is counted, as a digest: the table is no list of addresses. */
  readonly key: string;
  readonly policy: BackOffPolicy;
}

const FIRST_WAIT_MS = 1000;
/** Failures older than this are forgotten. */
export const FORGET_AFTER_MS = 24 * 3_600_000;

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const ACCOUNT_AT_ADDRESS: BackOffPolicy = { free: 5, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: HOUR_MS };
const ACCOUNT: BackOffPolicy = { free: 50, longestWaitMs: 30_000, forgetOneMs: 10 * MINUTE_MS };
/** Whoever guesses here has the password: shutting the account is right, and a million codes are soon tried. */
const SECOND_STEP: BackOffPolicy = { free: 10, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: HOUR_MS };
/** A company behind one address mistypes every few minutes and must not wait for it. */
const ADDRESS: BackOffPolicy = { free: 30, longestWaitMs: 5 * MINUTE_MS, forgetOneMs: MINUTE_MS };
/** Asking for a challenge proves nothing wrong; it only leaves a row. */
const VISIT: BackOffPolicy = { free: 300, longestWaitMs: 10_000, forgetOneMs: 10_000 };

/**
 * Failures are kept as a debt of time that runs down by itself, so that forgetting is exact however often somebody
 * tries. `debtMs` was owed `agoMs` ago.
 */
export function debtAfter(debtMs: number, agoMs: number): number {
  return Math.max(0, debtMs - Math.max(0, agoMs));
}

export function failuresOf(debtMs: number, policy: BackOffPolicy): number {
  return Math.ceil(debtMs / policy.forgetOneMs);
}

/** After the free failures the wait doubles with each one, from a second to the longest. */
export function waitAfter(failures: number, policy: BackOffPolicy): number {
  const beyond = failures - policy.free;
  if (beyond < 0) return 0;
  return Math.min(policy.longestWaitMs, FIRST_WAIT_MS * 2 ** Math.min(beyond, 30));
}

/** The subjects of one attempt; those that a success clears come first. */
export function attemptSubjects(kind: string, account: string, address: string): AttemptSubject[] {
  const name = `${kind} ${account.toLowerCase()}`;
  return [
    { key: digest(`account ${name} at ${networkOf(address)}`), policy: ACCOUNT_AT_ADDRESS },
    { key: digest(`account ${name}`), policy: kind === 'second-step' ? SECOND_STEP : ACCOUNT },
    { key: digest(`address ${kind} ${networkOf(address)}`), policy: ADDRESS },
  ];
}

/** One who begins a sign-in that another proof will decide. */
export function visitSubject(kind: string, address: string): AttemptSubject {
  return { key: digest(`address ${kind} ${networkOf(address)}`), policy: VISIT };
}

function digest(subject: string): string {
  return createHash('sha256').update(subject).digest('base64url');
}
