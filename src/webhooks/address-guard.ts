/**
 * Keeps deliveries out of private networks. A target is vetted when a hook is written and again at every attempt: its
 * text by `address-rules.ts`, then its name is resolved here, every answer must be public, and the connection is made to
 * the address that was vetted, never to the name. So there is no moment between check and connection in which DNS could
 * answer anew, and a literal address, for which Node calls no `lookup`, takes the same way.
 */
import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { Failure } from '../errors.ts';
import { isAllowedAddress, parseCidrs, parseTargetUrl, trimBrackets } from './address-rules.ts';

const RESOLVE_TIMEOUT_MS = 3000;
const MAX_ADDRESSES = 32;
/** Urls and addresses whose judgement is remembered, since the same few are asked about again and again. */
const MAX_REMEMBERED = 2000;

export interface VettedTarget {
  readonly url: URL;
  /** Scheme, host and port: what a circuit breaker and the fair shares are kept for. */
  readonly origin: string;
  /** Every address of the host, all of them allowed; IPv4 first. */
  readonly addresses: readonly string[];
}

/** `refused` is final, `unresolved` may be another time: the name did not answer. */
export type Vetting =
  | { readonly kind: 'allowed'; readonly target: VettedTarget }
  | { readonly kind: 'refused' }
  | { readonly kind: 'unresolved'; readonly reason: string };

/** The part of `node:dns/promises` that is used; it must not read the hosts file. */
export interface NameResolver {
  resolve4(name: string): Promise<string[]>;
  resolve6(name: string): Promise<string[]>;
}

export interface AddressGuardOptions {
  /** Ranges beside the public ones, from the server's configuration only. */
  readonly allowCidrs: readonly string[];
  readonly resolver?: NameResolver;
  /** Tells whoever runs the service; the caller learns nothing about its network. */
  readonly onRefused?: (host: string) => void;
}

export interface AddressGuard {
  vet(url: string): Promise<Vetting>;
  /** Throws the same `invalid` failure for every reason: nobody may map a network by reading refusals. */
  checkTarget(url: string): Promise<VettedTarget>;
  /** Asked again about the other end of a connection once it stands. */
  isAllowed(address: string): boolean;
}

export function createAddressGuard(options: AddressGuardOptions): AddressGuard {
  const resolver = options.resolver ?? new Resolver({ timeout: RESOLVE_TIMEOUT_MS, tries: 1 });
  const allowed = parseCidrs(options.allowCidrs);
  const isAllowed = remember((address: string) => isAllowedAddress(address, allowed));
  const parse = remember(parseTargetUrl);
  const vet = (raw: string) => vetTarget(parse(raw), resolver, isAllowed);
  return {
    vet,
    checkTarget: async (url) => {
      const vetting = await vet(url);
      if (vetting.kind === 'allowed') return vetting.target;
      if (vetting.kind === 'refused') options.onRefused?.(parse(url)?.host ?? '');
      throw refuseTarget();
    },
    isAllowed,
  };
}

function refuseTarget(): Failure {
  return new Failure('invalid', 'Cannot use this url: it must be an http or https address on the public internet', {
    field: 'url',
  });
}

/** Only for what depends on the text alone. */
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
  url: URL | undefined,
  resolver: NameResolver,
  isAllowed: (address: string) => boolean,
): Promise<Vetting> {
  if (url === undefined) return { kind: 'refused' };
  const host = trimBrackets(url.hostname);
  const found = isIP(host) === 0 ? await resolveAll(host, resolver) : { addresses: [host] };
  if ('reason' in found) return { kind: 'unresolved', reason: found.reason };
  const { addresses } = found;
  if (addresses.length > MAX_ADDRESSES || !addresses.every(isAllowed)) return { kind: 'refused' };
  return { kind: 'allowed', target: { url, origin: url.origin, addresses } };
}

type Resolution = { readonly addresses: readonly string[] } | { readonly reason: string };

async function resolveAll(host: string, resolver: NameResolver): Promise<Resolution> {
  const name = host.replace(/\.$/, '');
  const answers = await Promise.allSettled([
    withTimeout(resolver.resolve4(name), RESOLVE_TIMEOUT_MS),
    withTimeout(resolver.resolve6(name), RESOLVE_TIMEOUT_MS),
  ]);
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (addresses.length > 0) return { addresses };
  const [first] = answers;
  return { reason: first?.status === 'rejected' ? describeDnsError(first.reason) : 'no such name' };
}

function describeDnsError(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (code === 'ENOTFOUND' || code === 'ENODATA') return 'no such name';
  return code === 'ETIMEOUT' ? 'name resolution timeout' : 'name resolution failed';
}

/** c-ares counts its timeout per server and try; ours is for all of them. */
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
