import { isIPv4 } from 'node:net';

/** 127.0.0.0/8 and ::1, also as an IPv4 address in an IPv6 one. */
export function isLoopbackAddress(address: string | undefined): boolean {
  if (address === undefined) return false;
  const plain = address.startsWith('::ffff:') ? address.slice(7) : address;
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}
