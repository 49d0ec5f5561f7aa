/**
 * Where a request comes from. A proxy in front makes every connection come from itself and writes the caller's address
 * into `X-Forwarded-For`; anybody else can write that header too. So it is read from the right, hop by hop, and only as
 * long as the hop that wrote it is a proxy that the configuration trusts.
 */
import type { Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import { Failure } from '../errors.ts';

type Range = ReturnType<typeof ipaddr.parseCIDR>;

type Remote = Pick<Socket, 'remoteAddress'>;

/** `socket` is undefined for a request that is made in process, whose address is `-`. */
export type ReadClientAddress = (socket: Remote | undefined, forwardedFor: string | undefined) => string;

/** `trustedProxies` are addresses or CIDR ranges. Throws `invalid` for anything else. */
export function createAddressReader(trustedProxies: readonly string[]): ReadClientAddress {
  const ranges = trustedProxies.map(parseRange);
  return (socket, forwardedFor) => {
    const address = socket === undefined ? '-' : readSocketAddress(socket);
    return ranges.length === 0 ? address : findClient(address, forwardedFor ?? '', ranges);
  };
}

/** A connection's address does not change, and is asked for with each of its requests. */
const addressBySocket = new WeakMap<Remote, string>();

function readSocketAddress(socket: Remote): string {
  const known = addressBySocket.get(socket);
  if (known !== undefined) return known;
  const address = normalize(socket.remoteAddress) ?? '-';
  addressBySocket.set(socket, address);
  return address;
}

function findClient(socket: string, forwarded: string, ranges: readonly Range[]): string {
  // Only hops that a trusted proxy wrote are parsed: the rest of the header can be anything, and as long as a head can be.
  const hops = forwarded.split(',');
  let client = socket;
  while (isWithin(client, ranges)) {
    const before = normalize(hops.pop()?.trim());
    if (before === undefined) break;
    client = before;
  }
  return client;
}

function parseRange(text: string): Range {
  try {
    if (text.includes('/')) return ipaddr.parseCIDR(text);
    const address = ipaddr.process(text);
    return [address, address.kind() === 'ipv4' ? 32 : 128];
  } catch {
    throw new Failure(
      'invalid',
      `Cannot trust the proxy "${text}": it must be an address or a range such as 10.0.0.0/8`,
    );
  }
}

/** What is limited together: an IPv6 caller has a whole /64 to itself. */
export function networkOf(address: string): string {
  if (!ipaddr.IPv6.isValid(address)) return address;
  return ipaddr.IPv6.parse(address).parts.slice(0, 4).join(':');
}

/** The /48 around an IPv6 address, which one caller often has with its 65,536 networks; undefined for IPv4. */
export function siteOf(address: string): string | undefined {
  if (!ipaddr.IPv6.isValid(address)) return undefined;
  return `${ipaddr.IPv6.parse(address).parts.slice(0, 3).join(':')}::/48`;
}

/** One spelling for each address; undefined for what is none. */
function normalize(text: string | undefined): string | undefined {
  return text !== undefined && ipaddr.isValid(text) ? ipaddr.process(text).toString() : undefined;
}

function isWithin(address: string, ranges: readonly Range[]): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return ranges.some((range) => parsed.kind() === range[0].kind() && parsed.match(range));
}
