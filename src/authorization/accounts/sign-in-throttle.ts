/**
 * Decides how long the next sign-in waits after wrong passwords or codes (brute force, lockout; NIST SP 800-63B §5.2.2). A table
 * of the waits for one person is in docs/how-it-works/authorization.md ("Wrong passwords").
 *
 * Failures are counted in leaky buckets: each failure adds `forgetOneMs` to the level of a bucket, and the level falls by a
 * millisecond each millisecond. One attempt counts in several buckets: the account at this network, the account from all
 * networks, and the network for all accounts. A network is an IPv4 address or an IPv6 /64; its /48 prefix has buckets too,
 * since one customer may have a whole /48 (RFC 6177).
 *
 * A stranger must not lock the owner out, and the guesses at an account must stay bounded. So failures of other networks do not
 * delay an attempt from a network with few failures at the account, until there are `freeFromUnsuspiciousNetwork` of them. A
 * browser in which the owner signed in before has its own bucket. These functions are pure: `attempt-store.ts` keeps the levels.
 */
import { createHash } from 'node:crypto';
import { networkOf, prefix48Of } from '../../http/client-address.ts';

export interface ThrottlePolicy {
  /** How many attempts are checked without a wait. After the failure of the last one, the next attempt has to wait. */
  readonly free: number;
  /** The same for an attempt from a network with few failures at the account (`suspiciousFrom`); `free` when absent. */
  readonly freeFromUnsuspiciousNetwork?: number;
  readonly longestWaitMs: number;
  /** A failure raises the level by this, and is forgotten after this time. */
  readonly forgetOneMs: number;
}

export interface AttemptSubject {
  /** The bucket, as a digest, so that the table lists no addresses. */
  readonly key: string;
  readonly policy: ThrottlePolicy;
  /** Whether a success empties the bucket. In a bucket that strangers share, a success takes back only its own attempt. */
  readonly isClearedOnSuccess: boolean;
  /** With this many failures in this bucket, the network of the attempt is suspicious. */
  readonly suspiciousFrom?: number;
}

const FIRST_WAIT_MS = 1000;
/** This long after the last attempt, a bucket is empty; single failures are forgotten sooner (`forgetOneMs`). */
export const FORGET_AFTER_MS = 24 * 3_600_000;

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const ACCOUNT_AT_NETWORK: ThrottlePolicy = { free: 5, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: 6 * HOUR_MS };
const ACCOUNT_AT_PREFIX_48: ThrottlePolicy = { free: 10, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: 6 * HOUR_MS };
/** A person may mistype a password twice before the network is suspicious. */
const SUSPICIOUS_NETWORK_FROM = 3;
const SUSPICIOUS_PREFIX_48_FROM = 6;
/** All unsuspicious networks together may fail 1,000 times in a burst, and 720 times a day after that. */
const ACCOUNT: ThrottlePolicy = {
  free: 50,
  freeFromUnsuspiciousNetwork: 1000,
  longestWaitMs: 15 * MINUTE_MS,
  forgetOneMs: 2 * MINUTE_MS,
};
const ACCOUNT_ON_DEVICE: ThrottlePolicy = { free: 5, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: HOUR_MS };
/** Counted over all networks: a caller who guesses codes has the password already, and there are only a million codes. */
const SECOND_STEP: ThrottlePolicy = { free: 10, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: HOUR_MS };
/** Many people behind one address mistype every few minutes, and must not wait for each other. */
const NETWORK: ThrottlePolicy = { free: 30, longestWaitMs: 5 * MINUTE_MS, forgetOneMs: MINUTE_MS };
const PREFIX_48: ThrottlePolicy = { free: 300, longestWaitMs: MINUTE_MS, forgetOneMs: 10_000 };
/** A request for a challenge is no failed guess, but each one adds a row. */
const CHALLENGE: ThrottlePolicy = { free: 300, longestWaitMs: 10_000, forgetOneMs: 10_000 };
const CHALLENGE_OF_PREFIX_48: ThrottlePolicy = { free: 3000, longestWaitMs: 10_000, forgetOneMs: 1000 };

/** Mails that a stranger can cause to one person: three at once, then with waits that double up to an hour. */
const MAIL: ThrottlePolicy = { free: 3, longestWaitMs: HOUR_MS, forgetOneMs: HOUR_MS };

/** The level of a leaky bucket now, if it was `levelMs` at the last attempt, `agoMs` ago. */
export function drain(levelMs: number, agoMs: number): number {
  return Math.max(0, levelMs - Math.max(0, agoMs));
}

/** The number of failures that a level amounts to. */
export function failuresOf(levelMs: number, policy: ThrottlePolicy): number {
  return Math.ceil(levelMs / policy.forgetOneMs);
}

/** After the free failures the wait doubles with each one, from a second to the longest. */
export function waitAfter(failures: number, policy: ThrottlePolicy): number {
  const beyond = failures - policy.free;
  if (beyond < 0) return 0;
  return Math.min(policy.longestWaitMs, FIRST_WAIT_MS * 2 ** Math.min(beyond, 30));
}

/** A bucket with its failures, and the time since its last attempt. */
export interface AttemptCount extends AttemptSubject {
  readonly failures: number;
  readonly agoMs: number;
}

/** How many milliseconds an attempt has to wait before it is checked; 0 if it is checked now. */
export function waitOfAttempt(counts: readonly AttemptCount[]): number {
  const isUnsuspicious = counts.every(({ failures, suspiciousFrom = Infinity }) => failures < suspiciousFrom);
  const waits = counts.map(({ failures, policy, agoMs }) => {
    const free = isUnsuspicious ? (policy.freeFromUnsuspiciousNetwork ?? policy.free) : policy.free;
    return waitAfter(failures, { ...policy, free }) - agoMs;
  });
  return Math.max(0, ...waits);
}

export interface AttemptAt {
  readonly kind: 'password' | 'second-step';
  readonly account: string;
  readonly address: string;
  /** The id of a browser in which this account signed in before. */
  readonly deviceId?: string | undefined;
}

/** The buckets in which an attempt at an account counts. */
export function attemptSubjects({ kind, account, address, deviceId }: AttemptAt): AttemptSubject[] {
  const name = `${kind} ${account.toLowerCase()}`;
  if (deviceId !== undefined)
    return [{ key: digest(`account ${name} on ${deviceId}`), policy: ACCOUNT_ON_DEVICE, isClearedOnSuccess: true }];
  const [network, prefix48] = [networkOf(address), prefix48Of(address)];
  const ofAccount = { key: digest(`account ${name}`), policy: kind === 'password' ? ACCOUNT : SECOND_STEP };
  const atPrefix48 =
    prefix48 === undefined
      ? []
      : [
          {
            ...countAt(name, prefix48, ACCOUNT_AT_PREFIX_48),
            isClearedOnSuccess: false,
            suspiciousFrom: SUSPICIOUS_PREFIX_48_FROM,
          },
        ];
  return [
    {
      ...countAt(name, network, ACCOUNT_AT_NETWORK),
      isClearedOnSuccess: true,
      suspiciousFrom: SUSPICIOUS_NETWORK_FROM,
    },
    { ...ofAccount, isClearedOnSuccess: kind === 'second-step' },
    ...addressSubjects(kind, address),
    ...atPrefix48,
  ];
}

function countAt(name: string, network: string, policy: ThrottlePolicy) {
  return { key: digest(`account ${name} at ${network}`), policy };
}

/** The buckets of an attempt that names no account before it succeeds. */
export function addressSubjects(kind: string, address: string): AttemptSubject[] {
  return countNetworks(kind, address, { ofNetwork: NETWORK, ofPrefix48: PREFIX_48 });
}

/** The buckets of a request for a challenge, the first request of a passkey sign-in. */
export function challengeSubjects(kind: string, address: string): AttemptSubject[] {
  return countNetworks(kind, address, { ofNetwork: CHALLENGE, ofPrefix48: CHALLENGE_OF_PREFIX_48 });
}

/** The buckets of a requested mail. They count by the typed text, so the wait does not reveal whether an account exists. */
export function mailSubjects(typed: string, address: string): AttemptSubject[] {
  const ofPerson = { key: digest(`mail to ${typed.toLowerCase()}`), policy: MAIL, isClearedOnSuccess: false };
  return [ofPerson, ...addressSubjects('mail', address)];
}

function countNetworks(
  kind: string,
  address: string,
  { ofNetwork, ofPrefix48 }: { readonly ofNetwork: ThrottlePolicy; readonly ofPrefix48: ThrottlePolicy },
): AttemptSubject[] {
  const [network, prefix48] = [networkOf(address), prefix48Of(address)];
  const subject = { key: digest(`address ${kind} ${network}`), policy: ofNetwork, isClearedOnSuccess: false };
  if (prefix48 === undefined) return [subject];
  return [subject, { key: digest(`address ${kind} ${prefix48}`), policy: ofPrefix48, isClearedOnSuccess: false }];
}

function digest(subject: string): string {
  return createHash('sha256').update(subject).digest('base64url');
}
