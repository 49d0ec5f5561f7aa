/** Chooses between TLS and a connection in clear, and sends no token where others can read it. */
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';

export interface Tls {
  /** Certificates of the authorities to trust, in PEM; those of Node unless given. */
  readonly ca?: Buffer;
  /** The certificate that the service asks of its clients (mTLS), and its key, in PEM. */
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

export interface Access {
  readonly token?: string;
  /** `true` is TLS with the authorities that Node trusts. Without it, the connection is in clear. */
  readonly tls?: boolean | Tls;
  /** Sends the token to another machine in clear, where all between can read it. */
  readonly allowsTokenInClear?: boolean;
}

/** Throws when a token would leave this machine in clear. */
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
