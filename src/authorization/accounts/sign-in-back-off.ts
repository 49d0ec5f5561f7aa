/**
 * How long a guesser waits. What is counted at once: an account from one network (a few free tries), the account from
 * everywhere, and the network (a host that walks through accounts). A network is an IPv4 address, or an IPv6 /64 and the
 * /48 around it.
 *
 * A stranger must not lock the owner out, and the guesses at an account must stay bounded all the same (NIST SP 800-63B
 * §5.2.2). So a network with hardly a failure at the account is let through while others wait, until the account has
 * used up what it takes from strangers; and a browser that its owner signed in with before has a count of its own and
 * does not wait for those of others. Pure: the store keeps the counts.
 */
import { createHash } from 'node:crypto';
import { networkOf, siteOf } from '../../http/client-address.ts';

export interface BackOffPolicy {
  /** Failures without any wait. */
  readonly free: number;
  /** The same for an attempt from a network that is clean at this account; `free` when absent. */
  readonly freeForClean?: number;
  readonly longestWaitMs: number;
  /** After each such time one failure is forgotten. */
  readonly forgetOneMs: number;
}

export interface AttemptSubject {
  /** What is counted, as a digest: the table is no list of addresses. */
  readonly key: string;
  readonly policy: BackOffPolicy;
  /** A success clears it. The others, which strangers share, only get this attempt back. */
  readonly isOwn: boolean;
  /** From this many failures on the attempt is not one from a clean network. */
  readonly cleanBelow?: number;
}

const FIRST_WAIT_MS = 1000;
/** Failures older than this are forgotten. */
export const FORGET_AFTER_MS = 24 * 3_600_000;

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const ACCOUNT_AT_NETWORK: BackOffPolicy = { free: 5, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: 6 * HOUR_MS };
const ACCOUNT_AT_SITE: BackOffPolicy = { free: 10, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: 6 * HOUR_MS };
/** Three mistypings do not make a network a guesser. */
const CLEAN_NETWORK_BELOW = 3;
const CLEAN_SITE_BELOW = 6;
/** What an account takes from strangers: 1,000 failures at once and 720 a day, however many networks they come from. */
const ACCOUNT: BackOffPolicy = {
  free: 50,
  freeForClean: 1000,
  longestWaitMs: 15 * MINUTE_MS,
  forgetOneMs: 2 * MINUTE_MS,
};
const ACCOUNT_ON_DEVICE: BackOffPolicy = { free: 5, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: HOUR_MS };
/** A guesser of codes has the password already: locking the account is right, since a million codes are soon tried. */
const SECOND_STEP: BackOffPolicy = { free: 10, longestWaitMs: 15 * MINUTE_MS, forgetOneMs: HOUR_MS };
/** A company behind one address mistypes every few minutes and must not wait for it. */
const NETWORK: BackOffPolicy = { free: 30, longestWaitMs: 5 * MINUTE_MS, forgetOneMs: MINUTE_MS };
const SITE: BackOffPolicy = { free: 300, longestWaitMs: MINUTE_MS, forgetOneMs: 10_000 };
/** A request for a challenge is no failed guess; it only leaves a row. */
const VISIT: BackOffPolicy = { free: 300, longestWaitMs: 10_000, forgetOneMs: 10_000 };
const VISIT_OF_SITE: BackOffPolicy = { free: 3000, longestWaitMs: 10_000, forgetOneMs: 1000 };

/**
 * Failures are kept as a debt of time that runs down by itself, so that forgetting is exact however often a client
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

/** One count with the time since its last attempt. */
export interface AttemptCount extends AttemptSubject {
  readonly failures: number;
  readonly agoMs: number;
}

/** How long an attempt has to wait before it may be judged; 0 when it may now. */
export function waitOfAttempt(counts: readonly AttemptCount[]): number {
  const isClean = counts.every(({ failures, cleanBelow = Infinity }) => failures < cleanBelow);
  const waits = counts.map(({ failures, policy, agoMs }) => {
    const free = isClean ? (policy.freeForClean ?? policy.free) : policy.free;
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
    return [{ key: digest(`account ${name} on ${deviceId}`), policy: ACCOUNT_ON_DEVICE, isOwn: true }];
  const [network, site] = [networkOf(address), siteOf(address)];
  const ofAccount = { key: digest(`account ${name}`), policy: kind === 'password' ? ACCOUNT : SECOND_STEP };
  const atSite =
    site === undefined ? [] : [{ ...countAt(name, site, ACCOUNT_AT_SITE), isOwn: false, cleanBelow: CLEAN_SITE_BELOW }];
  return [
    { ...countAt(name, network, ACCOUNT_AT_NETWORK), isOwn: true, cleanBelow: CLEAN_NETWORK_BELOW },
    { ...ofAccount, isOwn: kind === 'second-step' },
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
export function visitSubjects(kind: string, address: string): AttemptSubject[] {
  return countNetworks(kind, address, { ofNetwork: VISIT, ofSite: VISIT_OF_SITE });
}

function countNetworks(
  kind: string,
  address: string,
  { ofNetwork, ofSite }: { readonly ofNetwork: BackOffPolicy; readonly ofSite: BackOffPolicy },
): AttemptSubject[] {
  const [network, site] = [networkOf(address), siteOf(address)];
  const subject = { key: digest(`address ${kind} ${network}`), policy: ofNetwork, isOwn: false };
  if (site === undefined) return [subject];
  return [subject, { key: digest(`address ${kind} ${site}`), policy: ofSite, isOwn: false }];
}

function digest(subject: string): string {
  return createHash('sha256').update(subject).digest('base64url');
}
