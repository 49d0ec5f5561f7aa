/**
 * Finds the client's address behind trusted proxies (`X-Forwarded-For`), and the network by which limits count it. A proxy in
 * front makes every connection come from itself and writes the caller's address into `X-Forwarded-For`; any client can write
 * that header too. So it is read from the right, hop by hop, and only as long as the hop that wrote it is a proxy that the
 * configuration trusts.
 */
import type { Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import { Failure } from '../errors.ts';
import { type Cidr, isInRanges, parseCidrs } from '../ip/ip-address.ts';
import { copyText } from './copy-text.ts';

type Remote = Pick<Socket, 'remoteAddress'>;

/** `socket` is undefined for a request that is made in process, whose address is `-`. */
export type ReadClientAddress = (socket: Remote | undefined, forwardedFor: string | undefined) => string;

/** An address in canonical form. */
interface Hop {
  readonly address: string;
  readonly isTrusted: boolean;
}

/** Undefined if the text is not an address. */
type ReadHop = (text: string | undefined) => Hop | undefined;

/** `trustedProxies` are addresses or CIDR ranges. Throws `invalid` for anything else. */
export function createAddressReader(trustedProxies: readonly string[]): ReadClientAddress {
  const readHop = createHopReader(trustedProxies.flatMap(parseRange));
  return (socket, forwardedFor) => {
    const hop = readHop(socket?.remoteAddress);
    if (hop === undefined) return '-';
    return hop.isTrusted && forwardedFor !== undefined ? findClient(hop, forwardedFor, readHop) : hop.address;
  };
}

function findClient(socket: Hop, forwarded: string, readHop: ReadHop): string {
  // Only hops that a trusted proxy wrote are parsed: the rest of the header can be anything, of any length that a head may have.
  const hops = forwarded.split(',');
  let client = socket;
  while (client.isTrusted) {
    const before = readHop(hops.pop()?.trim());
    if (before === undefined) break;
    client = before;
  }
  return client.address;
}

/** How many addresses are cached, in some hundred kilobytes; beyond it the cache is cleared. */
const MAX_KNOWN_HOPS = 1000;
/** The longest spelling of an IPv6 address without a zone. */
const MAX_KNOWN_LENGTH = 45;

/** Caches parsed addresses: parsing takes longer than most steps of a request, and the same addresses come again and again. */
function createHopReader(trusted: readonly Cidr[]): ReadHop {
  const hops = new Map<string, Hop>();
  return (text) => {
    const known = text === undefined ? undefined : hops.get(text);
    if (known !== undefined || text === undefined) return known;
    const hop = parseHop(text, trusted);
    if (hop === undefined || text.length > MAX_KNOWN_LENGTH) return hop;
    if (hops.size >= MAX_KNOWN_HOPS) hops.clear();
    hops.set(copyText(text), hop);
    return hop;
  };
}

/** Some proxies write the port of the client too: `192.0.2.1:5000`, `[2001:db8::1]:5000`. */
const WITH_PORT = /^(?:\[(?<ipv6>[^\]]+)\](?::\d{1,5})?|(?<ipv4>[^:]+):\d{1,5})$/;

function parseHop(text: string, trusted: readonly Cidr[]): Hop | undefined {
  const { ipv6, ipv4 } = WITH_PORT.exec(text)?.groups ?? {};
  const bare = ipv6 ?? ipv4 ?? text;
  if (!ipaddr.isValid(bare)) return undefined;
  const address = ipaddr.process(bare);
  const isTrusted = isInRanges(address, trusted);
  return { address: address.toString(), isTrusted };
}

function parseRange(text: string): Cidr[] {
  try {
    if (text.includes('/')) return parseCidrs([text]);
    const address = ipaddr.process(text);
    return [[address, address.kind() === 'ipv4' ? 32 : 128]];
  } catch {
    throw new Failure(
      'invalid',
      `Cannot trust the proxy "${text}": it must be an address or a range such as 10.0.0.0/8`,
    );
  }
}

/** Names the network that a connection counts for. */
export type ReadNetwork = (remoteAddress: string | undefined) => string;

/**
 * Each connection of a trusted proxy is a network of its own. Counted together they would be the largest network, and would give
 * way to a stranger who reaches the port directly.
 */
export function createNetworkReader(trustedProxies: readonly string[]): ReadNetwork {
  const readHop = createHopReader(trustedProxies.flatMap(parseRange));
  let proxied = 0;
  return (remoteAddress) => {
    if (trustedProxies.length === 0 || readHop(remoteAddress)?.isTrusted !== true)
      return networkOf(remoteAddress ?? '');
    proxied += 1;
    return `proxied ${proxied}`;
  };
}

/** The prefix of IPv4 addresses on a listener for both IPv4 and IPv6. */
const MAPPED_PREFIX = '::ffff:';

/** The network whose callers are limited together: an IPv6 caller has a whole /64 to itself, which is named by its four numbers. */
export function networkOf(address: string): string {
  if (address.startsWith(MAPPED_PREFIX)) return address.slice(MAPPED_PREFIX.length);
  if (!ipaddr.IPv6.isValid(address)) return address;
  return ipaddr.IPv6.parse(address).parts.slice(0, 4).join(':');
}

/** The /48 prefix of an IPv6 address, which providers give to one customer (RFC 6177); undefined for IPv4. */
export function prefix48Of(address: string): string | undefined {
  if (!ipaddr.IPv6.isValid(address)) return undefined;
  return `${ipaddr.IPv6.parse(address).parts.slice(0, 3).join(':')}::/48`;
}
