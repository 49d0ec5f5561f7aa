/**
 * Where a scrape may go. The list is the operator's, and inference servers are on this machine or in a private network, so
 * these addresses are allowed. Those that no server has are refused: a name that someone else controls could lead there.
 */
import ipaddr from 'ipaddr.js';

const ALLOWED_RANGES = ['unicast', 'private', 'loopback', 'uniqueLocal', 'carrierGradeNat'];

/** Where clouds give a machine its credentials, when it is not in the link-local range. */
const METADATA_ADDRESSES = ['100.100.100.200', '168.63.129.16', 'fd00:ec2::254', 'fd20:ce::254'].map((text) =>
  ipaddr.parse(text).toString(),
);

export function isScrapeAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text);
  return ALLOWED_RANGES.includes(address.range()) && !METADATA_ADDRESSES.includes(address.toString());
}
