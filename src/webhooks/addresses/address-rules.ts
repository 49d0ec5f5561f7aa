/** Decides which IP addresses a delivery may go to: public ones, and those that the configuration allows. */
import ipaddr from 'ipaddr.js';
import { type Cidr, type IpAddress, isInRanges, parseCidrs } from '../../ip/ip-address.ts';

/** Ranges that ipaddr.js calls unicast, but that are refused too. */
const DENIED_RANGES = parseCidrs([
  '168.63.129.16/32', // Azure's own services, on a public address
  '192.88.99.0/24', // 6to4 relays
  '::/96', // IPv4-compatible
  '64:ff9b::/96', // NAT64
  '64:ff9b:1::/48',
  '2001::/23', // Teredo, benchmarks, ORCHID
  '2002::/16', // 6to4
  '3fff::/20', // documentation
  '5f00::/16', // segment routing
]);

const GLOBAL_IPV6 = parseCidrs(['2000::/3']);

/** Whether the configuration allows the address explicitly, be it public or not. */
export function isConfiguredAddress(text: string, allowed: readonly Cidr[]): boolean {
  return ipaddr.isValid(text) && isInRanges(ipaddr.parse(text), allowed);
}

/** Whether this machine may connect there: a public unicast address, or an address that the configuration allows. */
export function isAllowedAddress(text: string, allowed: readonly Cidr[]): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  return isInRanges(address, allowed) || isPublic(address);
}

function isPublic(address: IpAddress): boolean {
  if (address.range() !== 'unicast' || isInRanges(address, DENIED_RANGES)) return false;
  return address.kind() === 'ipv4' || isInRanges(address, GLOBAL_IPV6);
}
