import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Failure } from '../errors.ts';
import { limitConnections } from './connection-limit.ts';

/** A bound HTTP port. The program listens first, since areas must know their own address, and serves once they are built. */
export interface HttpServer {
  readonly port: number;
  /** `http://host:port`, as a client on this machine reaches it. */
  readonly url: string;
  serve(listener: RequestListener): void;
  /** Takes no new connection, lets requests under way end, and cuts what is left after `deadlineMs`. */
  drain(deadlineMs: number): Promise<void>;
}

export interface HttpServerOptions {
  readonly host: string;
  readonly port: number;
  /** Connections beyond it take the place of those without a request; 1,000 unless given. */
  readonly maxConnections?: number;
  /** For the head of a request, 10 s unless given, and for all of it, 30 s unless given. */
  readonly headTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
}

const MAX_CONNECTIONS = 1000;
const HEAD_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Longer than clients keep an idle connection (Go: 90 s): a request must not meet a connection that is being closed. */
const KEEP_ALIVE_MS = 100_000;

export async function listenHttp(options: HttpServerOptions): Promise<HttpServer> {
  const { headTimeoutMs = HEAD_TIMEOUT_MS, requestTimeoutMs = REQUEST_TIMEOUT_MS } = options;
  let listener: RequestListener = (_, outgoing) => {
    outgoing.writeHead(503, { 'Content-Type': 'text/plain;charset=UTF-8', 'Retry-After': '1' }).end('Starting\n');
  };
  const timeouts = {
    headersTimeout: headTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: Math.ceil(headTimeoutMs / 5),
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
  const server = createServer(timeouts, (incoming, outgoing) => listener(incoming, outgoing));
  limitConnections(server, options.maxConnections ?? MAX_CONNECTIONS);
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://${toUrlHost(options.host)}:${port}`,
    serve: (next) => {
      listener = next;
    },
    drain: (deadlineMs) => drain(server, deadlineMs),
  };
}

/** A wildcard address is no address to call. */
function toUrlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

function listen(server: Server, { host, port }: { readonly host: string; readonly port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => reject(describeListenError(cause, host, port)));
    server.listen(port, host, resolve);
  });
}

function describeListenError(cause: NodeJS.ErrnoException, host: string, port: number): Failure {
  const reason =
    cause.code === 'EADDRINUSE' ? 'the port is taken; set HTTP_PORT to another one, or to 0 for any' : cause.message;
  return new Failure('unavailable', `Cannot listen for HTTP on ${host}:${port}: ${reason}`, {}, { cause });
}

function drain(server: Server, deadlineMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), deadlineMs);
    server.close(() => {
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });
}
