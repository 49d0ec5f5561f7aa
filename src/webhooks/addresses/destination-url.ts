/**
 * Decides which URLs a webhook may have, and refuses spellings that parsers read differently. Examples are an IP address in octal,
 * in hex or as one number, full-width digits, and a backslash before an `@`. A program that checks with one parser and connects with
 * another could be fooled, so only the plain spelling is allowed. `address-rules.ts` decides which addresses the host may have.
 */
import { isIP } from 'node:net';
import { hostOf } from '../../ip/ip-address.ts';

export const MAX_URL_LENGTH = 2048;

/** Control characters, blanks and the backslash, which parsers drop or replace. */
const HARMFUL_CHARACTER = /[^\u0021-\u007e\u00a1-\u2027\u202a-\ufefe\uff00-\uffef]|\\/;

/** Names that stay inside one network (RFC 6762, 8375, and the ones that ICANN keeps out of the root). */
const PRIVATE_SUFFIXES = ['local', 'internal', 'home.arpa', 'localdomain', 'lan', 'home', 'corp'];

/** Ports above 1023 of services that a request could harm: databases, caches, cluster management, mail. */
const DENIED_PORTS = new Set([
  1433, 1521, 1719, 1720, 1723, 2049, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 3659, 4045, 4190, 4369, 5060, 5061,
  5432, 5672, 5900, 5984, 6000, 6379, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 7000, 7001, 9042, 9092,
  9200, 9300, 10080, 10250, 10255, 11211, 15672, 16379, 26379, 27017, 27018, 27019, 50070,
]);

/** Why a target is refused. `private answer` is known only after its name was resolved; the others depend on its text. */
export type RefusalCause = 'form' | 'localhost' | 'private name' | 'private address' | 'private answer';

export interface TargetRefusal {
  readonly kind: 'forbidden';
  readonly cause: RefusalCause;
  /** Completes "it …", for the person who wrote the URL. */
  readonly reason: string;
}

/** `isPrivate`: the name belongs to a private network, and may be a target only if the configuration allows it. */
export type DestinationUrl = { readonly kind: 'plain'; readonly url: URL; readonly isPrivate: boolean } | TargetRefusal;

/** Checks the text of a URL, without resolving its name. */
export function parseTargetUrl(raw: string): DestinationUrl {
  if (raw.length > MAX_URL_LENGTH) return refuse('form', `must have at most ${MAX_URL_LENGTH} characters`);
  // The store would replace a lone surrogate with U+FFFD, which makes another address.
  if (HARMFUL_CHARACTER.test(raw) || !raw.isWellFormed())
    return refuse('form', 'must not contain blanks, control characters, lone surrogates or backslashes');
  if (!URL.canParse(raw)) return refuse('form', 'must be a complete address, as https://example.com/hook');
  const url = new URL(raw);
  const misshapen = findMistake(raw, url);
  if (misshapen !== undefined) return refuse('form', misshapen);
  return judgeHost(url);
}

function refuse(cause: RefusalCause, reason: string): TargetRefusal {
  return { kind: 'forbidden', cause, reason };
}

function findMistake(raw: string, url: URL): string | undefined {
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return `must be http or https, got "${url.protocol.slice(0, -1).slice(0, 30)}"`;
  if (url.username !== '' || url.password !== '' || /^https?:\/\/[^/?#]*@/i.test(raw))
    return 'must not contain a user name or a password';
  if (raw.includes('#')) return 'must not contain a fragment (#)';
  if (!isPlainAuthority(raw, url)) return 'must have its host in plain spelling, an IP address in the usual one';
  if (!isAllowedPort(url))
    return `must use port 80, 443 or one above 1023 that is no usual port of a database or another inner service, got ${url.port}`;
  return undefined;
}

/** Whether the authority is `scheme://host[:port]`, with an address in its canonical spelling or a name without escapes. */
function isPlainAuthority(raw: string, url: URL): boolean {
  const authority = /^https?:\/\/([^/?#]+)/i.exec(raw)?.[1];
  if (authority === undefined || /[%@]/.test(authority)) return false;
  const host = authority.replace(/:\d*$/, '').toLowerCase();
  const isAddress = isIP(hostOf(url)) !== 0;
  return !isAddress || host === url.hostname;
}

function isAllowedPort(url: URL): boolean {
  if (url.port === '') return true;
  const port = Number(url.port);
  return port === 80 || port === 443 || (port >= 1024 && !DENIED_PORTS.has(port));
}

function judgeHost(url: URL): DestinationUrl {
  if (isIP(hostOf(url)) !== 0) return { kind: 'plain', url, isPrivate: false };
  const labels = nameOf(url).split('.');
  if (labels.some((label) => label === '')) return refuse('form', 'must name its host without empty parts');
  if (labels.at(-1) === 'localhost') return refuse('localhost', 'must not be localhost');
  const isPrivate = labels.length < 2 || PRIVATE_SUFFIXES.some((suffix) => isBelow(labels.join('.'), suffix));
  return { kind: 'plain', url, isPrivate };
}

function isBelow(name: string, suffix: string): boolean {
  return name === suffix || name.endsWith(`.${suffix}`);
}

/** The host's name without the dot of the root. */
export function nameOf(url: URL): string {
  return url.hostname.replace(/\.$/, '');
}

/** The refusal of a private name that no setting allows. */
export function refusePrivateName(name: string): TargetRefusal {
  const reason = name.includes('.') ? 'must not name a host of a private network' : 'must name its host with a domain';
  return refuse('private name', `${reason}, got "${name.slice(0, 255)}"`);
}

export function refusePrivateAddress(address: string): TargetRefusal {
  return refuse('private address', `must not be a private or reserved address, got "${address}"`);
}

/** The same reason for every name, so that callers cannot find out which names exist and where they lead. */
export const PRIVATE_ANSWER: TargetRefusal = refuse('private answer', 'does not resolve to a public address');

/** Whether a name is one of the patterns: `jenkins`, `*.corp` for all below it, `*` for all. */
export function matchesName(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => {
    if (!pattern.startsWith('*')) return name === pattern;
    return name.endsWith(pattern.slice(1));
  });
}
