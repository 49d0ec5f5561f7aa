/**
 * Decides which addresses a scrape may reach. The operator writes the list, and inference servers are on this machine or in a
 * private network, so these addresses are allowed. Addresses that no inference server has are refused: a host name under another
 * person's control could resolve to them.
 */
import ipaddr from 'ipaddr.js';
import { isInRanges, parseCidrs } from '../../ip/ip-address.ts';

const ALLOWED_RANGES = ['unicast', 'private', 'loopback', 'uniqueLocal', 'carrierGradeNat'];

/** Reserved ranges that clusters use all the same: class E for pods, and the range for benchmarks. */
const CLUSTER_RANGES = parseCidrs(['240.0.0.0/4', '198.18.0.0/15']);

/** Addresses outside the link-local range at which clouds give a machine or a pod its credentials. */
const METADATA_RANGES = parseCidrs([
  '100.100.100.200/32', // Alibaba Cloud
  '168.63.129.16/32', // Azure
  'fd00:ec2::/32', // AWS: machines at ::254, pods of EKS at ::23
  'fd20:ce::254/128', // Google Cloud
  'fd00:42::42/128', // Scaleway
]);

export function isScrapeAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text);
  const isOfServers =
    ALLOWED_RANGES.includes(address.range()) || (address.range() === 'reserved' && isInRanges(address, CLUSTER_RANGES));
  return isOfServers && !isInRanges(address, METADATA_RANGES);
}
