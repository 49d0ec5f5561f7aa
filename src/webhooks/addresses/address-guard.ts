/**
 * Refuses delivery targets in private networks (SSRF, DNS rebinding), when a hook is written and at every attempt.
 * `destination-url.ts` checks the text of the URL, then its name is resolved here: every answer must be public or in a
 * configured range (`address-rules.ts`), and the connection is made to the vetted address, never to the name. So DNS is not asked
 * again between check and connection, and a literal address, for which Node calls no `lookup`, is checked in the same way.
 */
import { isIP } from 'node:net';
import { Failure } from '../../errors.ts';
import { hostOf, parseCidrs } from '../../ip/ip-address.ts';
import { isAllowedAddress, isConfiguredAddress } from './address-rules.ts';
import {
  matchesName,
  nameOf,
  PRIVATE_ANSWER,
  parseTargetUrl,
  type RefusalCause,
  refusePrivateAddress,
  refusePrivateName,
  type TargetRefusal,
} from './destination-url.ts';
import { createHostsFile } from './hosts-file.ts';
import { createNameResolver, type NameResolver } from './name-resolver.ts';

const RESOLVE_TIMEOUT_MS = 3000;
/** RFC 8305, section 3: once an attempt has IPv4 addresses, it waits this much longer for IPv6 addresses. */
const RESOLUTION_DELAY_MS = 50;
/** All addresses of a name are vetted, and this many are kept. */
const MAX_ADDRESSES = 32;
/** Results of URL checks are cached for this many URLs, since the same few are checked again and again. */
const MAX_REMEMBERED = 2000;

export interface VettedAddress {
  readonly url: URL;
  /** Scheme, host and port; circuit breakers and fair shares are kept by origin. */
  readonly origin: string;
  /** Addresses of the host, all of them allowed; IPv4 first. */
  readonly addresses: readonly string[];
}

/**
 * `forbidden` is final. `unresolved`: the name did not resolve, which may succeed later. `isOwnFault`: this system could not ask a
 * name server, so nothing is known about the name.
 */
export type Vetting =
  | { readonly kind: 'allowed'; readonly target: VettedAddress }
  | TargetRefusal
  | { readonly kind: 'unresolved'; readonly reason: string; readonly isOwnFault: boolean };

/** A refusal with its reason, for the operator's log; the caller does not see it. */
export interface ExplainedRefusal {
  readonly cause: RefusalCause | 'no answer';
  /** The host with its port; empty when the URL could not be read. */
  readonly host: string;
  readonly reason: string;
}

export interface AddressGuardOptions {
  /** Ranges beside the public ones, from the server's configuration only. */
  readonly allowCidrs: readonly string[];
  /** Patterns of private names that may be targets if all their addresses are in these ranges. */
  readonly allowHosts?: readonly string[];
  readonly resolver?: NameResolver;
  readonly hostsFile?: string;
  readonly onRefused?: (refusal: ExplainedRefusal) => void;
}

export interface AddressGuard {
  /** For an attempt: once the IPv4 addresses of a name are known, it waits only 50 ms more for its IPv6 addresses. */
  vet(url: string): Promise<Vetting>;
  /**
   * For a person who sets a URL: waits up to 3 s for the addresses of both families. Throws `invalid`; the message names the fault
   * in the text of the URL. Every fault of the addresses has the same message, so that refusals cannot be used to map a network.
   */
  checkUrl(url: string): Promise<VettedAddress>;
  /** Called again with the peer address, once connected. */
  isAllowed(address: string): boolean;
}

/** Which names and addresses are allowed, and how names are resolved. */
interface Policy {
  readonly isAllowed: (address: string) => boolean;
  readonly isConfigured: (address: string) => boolean;
  readonly opensName: (name: string) => boolean;
  readonly resolve: (name: string, patienceMs: number) => Promise<Resolution>;
}

export function createAddressGuard(options: AddressGuardOptions): AddressGuard {
  const policy = createPolicy(options);
  const parse = remember(parseTargetUrl);
  const vet = (raw: string, patienceMs: number) => vetTarget(parse(raw), policy, patienceMs);
  return {
    vet: (url) => vet(url, RESOLUTION_DELAY_MS),
    checkUrl: async (url) => {
      const vetting = await vet(url, RESOLVE_TIMEOUT_MS);
      if (vetting.kind === 'allowed') return vetting.target;
      const cause = vetting.kind === 'forbidden' ? vetting.cause : 'no answer';
      options.onRefused?.({ host: readShownHost(url), cause, reason: vetting.reason });
      const { reason } = vetting.kind === 'forbidden' ? vetting : PRIVATE_ANSWER;
      throw new Failure('invalid', `Cannot use this url: it ${reason}`, { field: 'url' });
    },
    isAllowed: policy.isAllowed,
  };
}

function createPolicy({ allowCidrs, allowHosts = [], hostsFile, ...options }: AddressGuardOptions): Policy {
  const resolver = options.resolver ?? createNameResolver({ timeoutMs: RESOLVE_TIMEOUT_MS });
  const allowed = parseCidrs(allowCidrs);
  // The hosts file is read only if `allowCidrs` is set: otherwise its addresses would be refused anyway.
  const hosts = allowed.length > 0 ? createHostsFile(hostsFile) : undefined;
  return {
    isAllowed: remember((address: string) => isAllowedAddress(address, allowed)),
    isConfigured: (address) => isConfiguredAddress(address, allowed),
    opensName: (name) => allowed.length > 0 && matchesName(name, allowHosts),
    resolve: async (name, patienceMs) => {
      const addresses = hosts?.find(name) ?? [];
      return addresses.length > 0 ? { addresses } : await resolveAll(name, resolver, patienceMs);
    },
  };
}

/** The host with its port, for the log. */
function readShownHost(url: string): string {
  return URL.canParse(url) ? new URL(url).host : '';
}

/** Caches results that depend on the text alone. */
function remember<T>(judge: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    if (known.has(text)) return known.get(text) as T;
    const judgement = judge(text);
    if (known.size >= MAX_REMEMBERED) known.clear();
    known.set(text, judgement);
    return judgement;
  };
}

async function vetTarget(
  text: ReturnType<typeof parseTargetUrl>,
  policy: Policy,
  patienceMs: number,
): Promise<Vetting> {
  if (text.kind === 'forbidden') return text;
  const { url, isPrivate } = text;
  const literal = hostOf(url);
  if (isIP(literal) !== 0) return policy.isAllowed(literal) ? allow(url, [literal]) : refusePrivateAddress(literal);
  const name = nameOf(url);
  if (isPrivate && !policy.opensName(name)) return refusePrivateName(name);
  const found = await policy.resolve(name, patienceMs);
  if ('reason' in found) return { kind: 'unresolved', ...found };
  const { addresses } = found;
  // A private name may resolve to configured addresses only: a server on a public address can claim any private name.
  const fits = addresses.every(isPrivate ? policy.isConfigured : policy.isAllowed);
  return fits ? allow(url, addresses.slice(0, MAX_ADDRESSES)) : PRIVATE_ANSWER;
}

function allow(url: URL, addresses: readonly string[]): Vetting {
  return { kind: 'allowed', target: { url, origin: url.origin, addresses } };
}

type Resolution = { readonly addresses: readonly string[] } | { readonly reason: string; readonly isOwnFault: boolean };

/**
 * This system has no free file or memory for a DNS query, cannot read its settings, or reaches no name server. c-ares also reports
 * `ECONNREFUSED` when it gets no socket.
 */
const OWN_FAULTS = new Set(['ECONNREFUSED', 'EFILE', 'EMFILE', 'ENOMEM']);

async function resolveAll(name: string, resolver: NameResolver, patienceMs: number): Promise<Resolution> {
  const ipv4 = withTimeout(resolver.resolve4(name), RESOLVE_TIMEOUT_MS);
  const ipv6 = withTimeout(resolver.resolve6(name), RESOLVE_TIMEOUT_MS);
  const answers = await Promise.allSettled([ipv4, endSoonAfter(ipv4, ipv6, patienceMs)]);
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (addresses.length > 0) return { addresses };
  const codes = answers.map((answer) => (answer.status === 'rejected' ? readCode(answer.reason) : 'ENODATA'));
  const ownFault = codes.find((code) => OWN_FAULTS.has(code));
  return { reason: describeDnsError(ownFault ?? codes[0]!), isOwnFault: ownFault !== undefined };
}

/** The addresses of `later`, or an empty list `patienceMs` after `first` had addresses. Every address that is used is vetted. */
async function endSoonAfter(
  first: Promise<readonly string[]>,
  later: Promise<string[]>,
  patienceMs: number,
): Promise<string[]> {
  let timer: NodeJS.Timeout | undefined;
  const giveUp = async (): Promise<string[]> => {
    const found = await first.catch(() => []);
    if (found.length === 0) return await later;
    return await new Promise((resolve) => {
      timer = setTimeout(() => resolve([]), patienceMs);
    });
  };
  try {
    return await Promise.race([later, giveUp()]);
  } finally {
    clearTimeout(timer);
  }
}

function readCode(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? '';
}

function describeDnsError(code: string): string {
  if (code === 'ENOTFOUND' || code === 'ENODATA') return 'no such name';
  return code === 'ETIMEOUT' ? 'name resolution timeout' : 'name resolution failed';
}

/** The timeout of c-ares counts for each server and query; ours is for all of them together. */
async function withTimeout<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(Object.assign(new Error('timeout'), { code: 'ETIMEOUT' })), timeoutMs);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
