/** Chooses between TLS and a plaintext connection, and sends no token where others can read it. */
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';

export interface Tls {
  /** Certificates of the trusted authorities, in PEM; by default those of Node. */
  readonly ca?: Buffer;
  /** The client certificate for mTLS and its key, in PEM. */
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

export interface Access {
  readonly token?: string;
  /** `true` is TLS with the authorities that Node trusts. Without it, the connection is plaintext. */
  readonly tls?: boolean | Tls;
  /** Allows to send the token to another machine as plaintext, which others on the network can read. */
  readonly allowsTokenInClear?: boolean;
}

/** Throws if a token would leave this machine as plaintext. */
export function createCredentials(address: string, { token, tls, allowsTokenInClear }: Access): ChannelCredentials {
  if (tls !== undefined && tls !== false) {
    const { ca = null, key = null, cert = null } = tls === true ? {} : tls;
    return credentials.createSsl(ca, key, cert);
  }
  if (token !== undefined && allowsTokenInClear !== true && !isOnThisMachine(address))
    throw new Error(`Cannot send the token to ${address} without TLS: set tls, or allowsTokenInClear`);
  return credentials.createInsecure();
}

/** A unix socket or loopback. */
function isOnThisMachine(address: string): boolean {
  if (/^unix(-abstract)?:/.test(address)) return true;
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/.test(address.replace(/^(dns|ipv4|ipv6):\/*/, ''));
}
