/** Decides whether a caller is on this machine: it connects through a Unix socket, or its address is a loopback address. */
import { isIPv4 } from 'node:net';

export interface Peer {
  readonly isUnixSocket: boolean;
  readonly address: string | undefined;
}

export function isLocalPeer({ isUnixSocket, address }: Peer): boolean {
  return isUnixSocket || isLoopbackAddress(address);
}

/** 127.0.0.0/8 and ::1, also as an IPv4 address in an IPv6 one. */
export function isLoopbackAddress(address: string | undefined): boolean {
  if (address === undefined) return false;
  const plain = address.startsWith('::ffff:') ? address.slice(7) : address;
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}
