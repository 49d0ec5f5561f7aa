/** Parses IP addresses and ranges in CIDR notation, and reads the address in a URL. */
import ipaddr from 'ipaddr.js';

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;
/** A range such as 10.0.0.0/8: its address, and how many leading bits it fixes. */
export type Cidr = readonly [IpAddress, number];

/** Throws for a text that is not CIDR notation. */
export function parseCidrs(texts: readonly string[]): Cidr[] {
  return texts.map((text) => ipaddr.parseCIDR(text));
}

/** Whether one of the ranges has the address. A range of IPv4 never has an IPv6 address, even one that stands for an IPv4 address. */
export function isInRanges(address: IpAddress, ranges: readonly Cidr[]): boolean {
  return ranges.some(([range, bits]) => range.kind() === address.kind() && address.match(range as never, bits));
}

/** The host of a URL as sockets and resolvers want it: `[::1]` → `::1`. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

/** The host in a URL by which to call a server that listens at an address: `::1` → `[::1]`. No wildcard can be called. */
export function toUrlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
