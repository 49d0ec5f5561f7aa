/**
 * How long to wait after failed sign-ins. Failures are counted in leaky buckets: each failure adds `forgetOneMs` to the
 * level of a bucket, and time drains it. One attempt counts in several buckets: the account from this network (a few
 * free attempts), the account from everywhere, and the network (a host that tries many accounts). A network is an IPv4
 * address, or an IPv6 /64 and the /48 around it.
 *
 * A stranger must not lock the owner out, and still the guesses at an account must stay bounded (NIST SP 800-63B
 * §5.2.2). So a network with few failures at the account is unsuspicious and need not wait with the others, until the
 * account has had `freeFromUnsuspiciousNetwork` failures. A browser in which the owner signed in before has a bucket of
 * its own. Pure: the store keeps the levels.
 */
import { createHash } from 'node:crypto';
import { networkOf, siteOf } from '../../http/client-address.ts';

export interface BackOffPolicy {
  /** Failures without any wait. */
  readonly free: number;
  /** The same for an attempt from an unsuspicious network; `free` when absent. */
  readonly freeFromUnsuspiciousNetwork?: number;
  readonly longestWaitMs: number;
  /** What a failure adds to the level. After this time it has drained. */
  readonly forgetOneMs: number;
}

export interface AttemptSubject {
  /** What is counted, as a digest: the table is no list of addresses. */
  readonly key: string;
  readonly policy: BackOffPolicy;
  /** A success empties the bucket. A bucket that strangers share only loses this attempt. */
  readonly isClearedOnSuccess: boolean;
  /** With this many failures in this bucket, the attempt comes from a suspicious network. */
  readonly suspiciousFrom?: number;
}

const FIRST_WAIT_MS = 1000;
/** Failures older than this are forgotten. */
export const FORGET_AFTER_MS = 24 * 3_600_000;

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const ACCOUNT_AT_NETWORK: BackOffPolicy = { free: 5, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: 6 * HOUR_MS };
const ACCOUNT_AT_SITE: BackOffPolicy = { free: 10, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: 6 * HOUR_MS };
/** Two mistypings do not make a network suspicious. */
const SUSPICIOUS_NETWORK_FROM = 3;
const SUSPICIOUS_SITE_FROM = 6;
/** From all unsuspicious networks together: 1,000 failures at once and 720 a day. */
const ACCOUNT: BackOffPolicy = {
  free: 50,
  freeFromUnsuspiciousNetwork: 1000,
  longestWaitMs: 15 * MINUTE_MS,
  forgetOneMs: 2 * MINUTE_MS,
};
const ACCOUNT_ON_DEVICE: BackOffPolicy = { free: 5, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: HOUR_MS };
/** A guesser of codes has the password already: locking the account is right, since a million codes are soon tried. */
const SECOND_STEP: BackOffPolicy = { free: 10, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: HOUR_MS };
/** A company behind one address mistypes every few minutes and must not wait for it. */
const NETWORK: BackOffPolicy = { free: 30, longestWaitMs: 5 * MINUTE_MS, forgetOneMs: MINUTE_MS };
const SITE: BackOffPolicy = { free: 300, longestWaitMs: MINUTE_MS, forgetOneMs: 10_000 };
/** A request for a challenge is not a failed guess; it only adds a row. */
const CHALLENGE: BackOffPolicy = { free: 300, longestWaitMs: 10_000, forgetOneMs: 10_000 };
const CHALLENGE_OF_SITE: BackOffPolicy = { free: 3000, longestWaitMs: 10_000, forgetOneMs: 1000 };

/** Mails to one person that anybody can cause: three at once, then after waits that double up to an hour. */
const MAIL: BackOffPolicy = { free: 3, longestWaitMs: HOUR_MS, forgetOneMs: HOUR_MS };

/** The level of a leaky bucket now, if it was `levelMs` at the last attempt, `agoMs` ago. */
export function drain(levelMs: number, agoMs: number): number {
  return Math.max(0, levelMs - Math.max(0, agoMs));
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

/** One count with the time since its last attempt. */
export interface AttemptCount extends AttemptSubject {
  readonly failures: number;
  readonly agoMs: number;
}

/** How long an attempt has to wait before it may be judged; 0 when it may now. */
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
  /** Of a browser in which this account signed in before. */
  readonly deviceId?: string | undefined;
}

/** What one attempt at an account is counted for. */
export function attemptSubjects({ kind, account, address, deviceId }: AttemptAt): AttemptSubject[] {
  const name = `${kind} ${account.toLowerCase()}`;
  if (deviceId !== undefined)
    return [{ key: digest(`account ${name} on ${deviceId}`), policy: ACCOUNT_ON_DEVICE, isClearedOnSuccess: true }];
  const [network, site] = [networkOf(address), siteOf(address)];
  const ofAccount = { key: digest(`account ${name}`), policy: kind === 'password' ? ACCOUNT : SECOND_STEP };
  const atSite =
    site === undefined
      ? []
      : [{ ...countAt(name, site, ACCOUNT_AT_SITE), isClearedOnSuccess: false, suspiciousFrom: SUSPICIOUS_SITE_FROM }];
  return [
    {
      ...countAt(name, network, ACCOUNT_AT_NETWORK),
      isClearedOnSuccess: true,
      suspiciousFrom: SUSPICIOUS_NETWORK_FROM,
    },
    { ...ofAccount, isClearedOnSuccess: kind === 'second-step' },
    ...addressSubjects(kind, address),
    ...atSite,
  ];
}

function countAt(name: string, network: string, policy: BackOffPolicy) {
  return { key: digest(`account ${name} at ${network}`), policy };
}

/** An attempt that names no account before it succeeds. */
export function addressSubjects(kind: string, address: string): AttemptSubject[] {
  return countNetworks(kind, address, { ofNetwork: NETWORK, ofSite: SITE });
}

/** Begins a sign-in that another proof decides later. */
export function challengeSubjects(kind: string, address: string): AttemptSubject[] {
  return countNetworks(kind, address, { ofNetwork: CHALLENGE, ofSite: CHALLENGE_OF_SITE });
}

/** A mail that a stranger asks for, for whatever was typed: an account is not needed, so the wait says nothing about one. */
export function mailSubjects(typed: string, address: string): AttemptSubject[] {
  const ofPerson = { key: digest(`mail to ${typed.toLowerCase()}`), policy: MAIL, isClearedOnSuccess: false };
  return [ofPerson, ...addressSubjects('mail', address)];
}

function countNetworks(
  kind: string,
  address: string,
  { ofNetwork, ofSite }: { readonly ofNetwork: BackOffPolicy; readonly ofSite: BackOffPolicy },
): AttemptSubject[] {
  const [network, site] = [networkOf(address), siteOf(address)];
  const subject = { key: digest(`address ${kind} ${network}`), policy: ofNetwork, isClearedOnSuccess: false };
  if (site === undefined) return [subject];
  return [subject, { key: digest(`address ${kind} ${site}`), policy: ofSite, isClearedOnSuccess: false }];
}

function digest(subject: string): string {
  return createHash('sha256').update(subject).digest('base64url');
}
