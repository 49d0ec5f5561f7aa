/** Parses IP addresses and ranges in CIDR notation, and reads the address in a URL. */
import ipaddr from 'ipaddr.js';

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;
/** A range such as 10.0.0.0/8: its address, and how many leading bits it fixes. */
export type Cidr = readonly [IpAddress, number];

/**
 * Throws for a text that is not CIDR notation. A range of IPv4-mapped IPv6 addresses (`::ffff:10.0.0.0/104`) counts as both: sockets
 * and rules write such an address in either form.
 */
export function parseCidrs(texts: readonly string[]): Cidr[] {
  return texts.flatMap((text): Cidr[] => {
    const [address, bits] = ipaddr.parseCIDR(text);
    const isMapped = address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= MAPPED_BITS;
    return isMapped
      ? [
          [address, bits],
          [address.toIPv4Address(), bits - MAPPED_BITS],
        ]
      : [[address, bits]];
  });
}

/** The bits before the IPv4 address in `::ffff:0:0/96`. */
const MAPPED_BITS = 96;

/** Whether one of the ranges contains the address. A range of IPv4 never contains an IPv6 address, even an IPv4-mapped one. */
export function isInRanges(address: IpAddress, ranges: readonly Cidr[]): boolean {
  return ranges.some(([range, bits]) => range.kind() === address.kind() && address.match(range as never, bits));
}

/** The host of a URL in the form for sockets and resolvers: `[::1]` → `::1`. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

/** The host in a URL for a server that listens at an address: `::1` → `[::1]`. A wildcard becomes `localhost`. */
export function toUrlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
