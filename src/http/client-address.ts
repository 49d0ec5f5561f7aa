/**
 * Where a request comes from. A proxy in front makes every connection come from itself and writes the caller's address
 * into `X-Forwarded-For`; anybody else can write that header too. So it is read from the right, hop by hop, and only as
 * long as the hop that wrote it is a proxy that the configuration trusts.
 */
import { getConnInfo } from '@hono/node-server/conninfo';
import type { Context } from 'hono';
import ipaddr from 'ipaddr.js';
import { Failure } from '../errors.ts';
import type { HttpEnv } from './context.ts';

type Range = ReturnType<typeof ipaddr.parseCIDR>;

export type ReadClientAddress = (c: Context<HttpEnv>) => string;

/** `trustedProxies` are addresses or CIDR ranges. Throws `invalid` for anything else. */
export function createAddressReader(trustedProxies: readonly string[]): ReadClientAddress {
  const ranges = trustedProxies.map(parseRange);
  return (c) => {
    const socket = readSocketAddress(c);
    return ranges.length === 0 ? socket : findClient(socket, c.req.header('x-forwarded-for') ?? '', ranges);
  };
}

/** `-` where there is no socket (a request made in process). */
export function readSocketAddress(c: Context<HttpEnv>): string {
  const hasSocket = (c.env as { incoming?: unknown } | undefined)?.incoming !== undefined;
  return normalize(hasSocket ? getConnInfo(c).remote.address : undefined) ?? '-';
}

function findClient(socket: string, forwarded: string, ranges: readonly Range[]): string {
  const hops = forwarded.split(',').map((hop) => normalize(hop.trim()));
  let client = socket;
  while (isWithin(client, ranges)) {
    const before = hops.pop();
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

/** One spelling for each address; undefined for what is none. */
function normalize(text: string | undefined): string | undefined {
  return text !== undefined && ipaddr.isValid(text) ? ipaddr.process(text).toString() : undefined;
}

function isWithin(address: string, ranges: readonly Range[]): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return ranges.some((range) => parsed.kind() === range[0].kind() && parsed.match(range));
}
