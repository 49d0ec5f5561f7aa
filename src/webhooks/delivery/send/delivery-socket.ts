/** Opens the socket of a delivery to a vetted address, with TLS, and checks the connected peer. */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { hostOf } from '../../../ip/ip-address.ts';
import type { VettedAddress } from '../../addresses/address-guard.ts';
import { type AttemptDeadline, earlierOf, startDeadline } from './attempt-deadline.ts';

export interface SocketTimings {
  readonly connectMs: number;
  readonly tlsMs: number | null;
}

export interface OpenSocket {
  readonly socket: Socket;
  readonly timings: SocketTimings;
}

export interface SocketOptions {
  /** Called with the peer's address once the socket is connected. */
  readonly isAllowed: (address: string) => boolean;
  readonly monotonicMs: () => number;
  /** Roots to trust; those of Node unless given. */
  readonly ca?: readonly string[] | undefined;
}

/** The peer of an open connection has an address that is not allowed. */
export class ForbiddenAddress extends Error {}

const MAX_TRIED = 3;
/**
 * How long an address other than the last may take to connect, with TLS: a machine that drops packets without an answer would use up
 * the whole time. TCP has sent its first packet twice by then.
 */
const ADDRESS_TIME_MS = 3000;

/** Tries the addresses in turn, until the deadline. */
export async function openSocket(
  target: VettedAddress,
  options: SocketOptions,
  deadline: AttemptDeadline,
): Promise<OpenSocket> {
  let failure: unknown;
  const tried = target.addresses.slice(0, MAX_TRIED);
  for (const address of tried) {
    const isLast = address === tried.at(-1);
    const ofAddress = isLast ? undefined : startDeadline(ADDRESS_TIME_MS);
    try {
      const until = ofAddress === undefined ? deadline : earlierOf(ofAddress, deadline);
      return await openSocketTo(address, target.url, options, until);
    } catch (error) {
      if (deadline.hasPassed || error instanceof ForbiddenAddress || isTlsError(error)) throw error;
      // A failure of the receiver at one address counts, even if this system lacks resources for another.
      if (failure === undefined || !isShortage(error)) failure = error;
    } finally {
      ofAddress?.clear();
    }
  }
  throw failure;
}

async function openSocketTo(
  address: string,
  url: URL,
  options: SocketOptions,
  deadline: AttemptDeadline,
): Promise<OpenSocket> {
  const startMs = options.monotonicMs();
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  const tcp = connectTcp({ host: address, port, noDelay: true, autoSelectFamily: false });
  await waitForEvent(tcp, 'connect', deadline);
  const connectMs = options.monotonicMs() - startMs;
  if (!options.isAllowed(tcp.remoteAddress ?? '')) {
    tcp.destroy();
    throw new ForbiddenAddress('blocked address');
  }
  if (url.protocol === 'http:') return { socket: tcp, timings: { connectMs, tlsMs: null } };
  const tls = connectTls({ socket: tcp, ...describeTls(url), secureContext: secureContextFor(options.ca) });
  await waitForEvent(tls, 'secureConnect', deadline);
  return { socket: tls, timings: { connectMs, tlsMs: options.monotonicMs() - startMs - connectMs } };
}

/**
 * The certificate must match the name of the URL, not its address. A server name in TLS has no dot at its end, and an IP address is
 * none (RFC 6066 §3).
 */
function describeTls(url: URL): ConnectionOptions {
  const host = hostOf(url).replace(/\.$/, '');
  const name = isIP(host) === 0 ? { servername: host } : {};
  return { host, ...name, ALPNProtocols: ['http/1.1'] };
}

const contextByRoots = new Map<readonly string[] | undefined, SecureContext>();

/** One context for each CA list: a SecureContext holds tens of kilobytes outside the heap, which the garbage collector does not count. */
function secureContextFor(ca: readonly string[] | undefined): SecureContext {
  const known = contextByRoots.get(ca);
  if (known !== undefined) return known;
  const context = createSecureContext({ minVersion: 'TLSv1.2', ...(ca === undefined ? {} : { ca: [...ca] }) });
  contextByRoots.set(ca, context);
  return context;
}

function waitForEvent(socket: Socket, event: 'connect' | 'secureConnect', deadline: AttemptDeadline): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: unknown) => {
      deadline.endStage();
      socket.off(event, onEvent);
      socket.off('error', onError);
      socket.off('close', onClose);
      if (error === undefined) return resolve();
      socket.once('error', () => {});
      socket.destroy();
      reject(error as Error);
    };
    const onEvent = () => settle();
    const onError = (error: Error) => settle(error);
    const onClose = () => settle(Object.assign(new Error('closed'), { code: 'ECONNRESET' }));
    socket.once(event, onEvent);
    socket.once('error', onError);
    socket.once('close', onClose);
    deadline.onPassed(settle);
  });
}

const SHORTAGES = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM']);

/** Whether this system has no file, memory or port for a connection, so that no request reached the receiver. */
export function isShortage(error: unknown): boolean {
  const { code = '', address = '' } = (error ?? {}) as NodeJS.ErrnoException & { readonly address?: string };
  // A system without IPv6 reports the same error for an IPv6 connection, even if ports are free.
  return SHORTAGES.has(code) || (code === 'EADDRNOTAVAIL' && isIP(address) === 4);
}

export function isTlsError(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code ?? '';
  return /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|EPROTO)/.test(code);
}
