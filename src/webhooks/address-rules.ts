/**
 * Which addresses a delivery may go to, as rules over values: what a URL may look like and which IP addresses are
 * public. Parsers disagree about odd spellings (octal, hex, one number, full-width digits, a backslash before an `@`),
 * and whoever checks with one and connects with another is fooled; so every spelling but the plain one is refused.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Cidr = readonly [Address, number];

const MAX_URL_LENGTH = 2048;

/** Controls, blanks, and the backslash, all of which parsers drop or turn into something else. */
const HARMFUL_CHARACTER = /[^\u0021-\u007e\u00a1-\u2027\u202a-\ufefe\uff00-\uffef]|\\/;

/** Names that stay inside a machine or a house (RFC 6761, 6762, 8375, 9476). */
const PRIVATE_SUFFIXES = ['localhost', 'local', 'internal', 'home.arpa', 'localdomain', 'lan', 'home', 'corp'];

/** Services above 1024 that are not receivers and do harm when spoken to: databases, caches, cluster and mail ports. */
const DENIED_PORTS = new Set([
  1433, 1521, 1719, 1720, 1723, 2049, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 3659, 4045, 4190, 4369, 5060, 5061,
  5432, 5672, 5900, 5984, 6000, 6379, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 7000, 7001, 9042, 9092,
  9200, 9300, 10080, 10250, 10255, 11211, 15672, 16379, 26379, 27017, 27018, 27019, 50070,
]);

const DENIED_RANGES = [
  '168.63.129.16/32', // Azure's own services, on a public address
  '192.88.99.0/24', // 6to4 relays
  '::/96', // IPv4-compatible
  '64:ff9b::/96', // NAT64
  '64:ff9b:1::/48',
  '2001::/23', // Teredo, benchmarks, ORCHID
  '2002::/16', // 6to4
  '3fff::/20', // documentation
  '5f00::/16', // segment routing
].map((range) => ipaddr.parseCIDR(range));

const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3');

export function parseCidrs(ranges: readonly string[]): Cidr[] {
  return ranges.map((range) => ipaddr.parseCIDR(range));
}

/** The URL when its text is one that a delivery may go to, as far as that can be told without asking anybody. */
export function parseTargetUrl(raw: string): URL | undefined {
  if (raw.length > MAX_URL_LENGTH || !URL.canParse(raw)) return undefined;
  if (HARMFUL_CHARACTER.test(raw)) return undefined;
  const url = new URL(raw);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined;
  if (url.username !== '' || url.password !== '' || raw.includes('#')) return undefined;
  if (!isPlainAuthority(raw, url) || !isAllowedPort(url)) return undefined;
  return isAllowedHost(url.hostname) ? url : undefined;
}

/** The authority as written: `scheme://host[:port]`, an address in its one canonical spelling, a name without escapes. */
function isPlainAuthority(raw: string, url: URL): boolean {
  const authority = /^https?:\/\/([^/?#]+)/i.exec(raw)?.[1];
  if (authority === undefined || /[%@]/.test(authority)) return false;
  const host = authority.replace(/:\d*$/, '').toLowerCase();
  const isAddress = isIP(trimBrackets(url.hostname)) !== 0;
  return !isAddress || host === url.hostname;
}

function isAllowedPort(url: URL): boolean {
  if (url.port === '') return true;
  const port = Number(url.port);
  return port === 80 || port === 443 || (port >= 1024 && !DENIED_PORTS.has(port));
}

function isAllowedHost(hostname: string): boolean {
  if (isIP(trimBrackets(hostname)) !== 0) return true;
  const labels = hostname.replace(/\.$/, '').split('.');
  if (labels.length < 2 || labels.some((label) => label === '')) return false;
  const name = labels.join('.');
  return !PRIVATE_SUFFIXES.some((suffix) => name === suffix || name.endsWith(`.${suffix}`));
}

/** `[::1]` → `::1`, as sockets and resolvers want it. */
export function trimBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** Whether this machine may connect there: a public unicast address, or one that the server's configuration allows. */
export function isAllowedAddress(text: string, allowed: readonly Cidr[]): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  return isWithin(address, allowed) || isPublic(address);
}

function isPublic(address: Address): boolean {
  if (address.range() !== 'unicast' || isWithin(address, DENIED_RANGES)) return false;
  return address.kind() === 'ipv4' || isWithin(address, [GLOBAL_IPV6]);
}

function isWithin(address: Address, ranges: readonly Cidr[]): boolean {
  return ranges.some(([range, bits]) => range.kind() === address.kind() && address.match([range, bits] as never));
}
