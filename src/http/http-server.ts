/** Listens on the HTTP port with limits on time, headers and connections, and drains it on shutdown. */

import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from '../errors.ts';
import { toUrlHost } from '../ip/ip-address.ts';
import { realWorld } from '../world.ts';
import { CountedMessage, watchChunks } from './chunk-limit.ts';
import { createNetworkReader } from './client-address.ts';
import { createOpenAnswers, limitConnections, type OpenAnswers } from './connection-limit.ts';
import { limitPipelines } from './pipelines/pipeline-limit.ts';

/** A bound HTTP port. The program listens first, since areas must know their own address, and serves once they are built. */
export interface HttpServer {
  readonly port: number;
  /** `http://host:port`, as a client on this machine reaches it. */
  readonly url: string;
  serve(listener: RequestListener): void;
  /**
   * Answers requests on open connections for half a second more, and closes each with its answer. Then accepts no new
   * connection, lets running requests end, and cuts the rest after `deadlineMs`.
   */
  drain(deadlineMs: number): Promise<void>;
}

export interface HttpServerOptions {
  readonly host: string;
  readonly port: number;
  /** The setting of the port, for the error when it is taken; HTTP_PORT unless given. */
  readonly variable?: string;
  /** The limit of connections, beyond which a new one replaces one without a request; 1,000 unless given. */
  readonly maxConnections?: number;
  /** Addresses or ranges of proxies, whose connections do not count as those of one network; none unless given. */
  readonly trustedProxies?: readonly string[];
  /** The time limit of the head of a request (10 s unless given); that of all of it is `requestTimeoutMs` (30 s unless given). */
  readonly headTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
  /** How long a client may take no bytes of its answer; 30 s unless given. */
  readonly unreadTimeoutMs?: number;
  /** The clock by which connections give their place to others; that of the machine unless given. */
  readonly monotonicMs?: () => number;
}

const MAX_CONNECTIONS = 1000;
const HEAD_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const UNREAD_TIMEOUT_MS = 30_000;
/**
 * Longer than clients and proxies keep an idle connection (Go: 90 s, Google's load balancer: 600 s), so that no request arrives on a
 * connection that is being closed.
 */
const KEEP_ALIVE_MS = 620_000;
/** Longer than a request takes on the network. */
const LAST_REQUESTS_MS = 500;

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
  const server: Server = createServer({ ...timeouts, IncomingMessage: CountedMessage });
  server.on('request', watchChunks);
  const connections = followConnections(server);
  const readNetwork = createNetworkReader(options.trustedProxies ?? []);
  const begin = limitPipelines(server, readNetwork);
  server.on('request', (incoming, outgoing) => {
    if (hasTwoHosts(incoming)) refuseHosts(incoming, outgoing);
    else begin(incoming, outgoing, () => listener(incoming, outgoing));
  });
  const { maxConnections = MAX_CONNECTIONS, unreadTimeoutMs = UNREAD_TIMEOUT_MS } = options;
  const { monotonicMs = () => realWorld.monotonicMs() } = options;
  limitConnections(server, { maxConnections, readNetwork, unreadTimeoutMs, monotonicMs });
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://${toUrlHost(options.host)}:${port}`,
    serve: (next) => {
      listener = next;
    },
    drain: (deadlineMs) => drain(server, connections, deadlineMs),
  };
}

/** Of several `Host` headers, proxies and servers could use different ones (RFC 9112, section 3.2). */
function hasTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.filter((text, index) => index % 2 === 0 && text.length === 4 && /^host$/i.test(text)).length > 1;
}

const TWO_HOSTS = 'Cannot read the request: it has two Host fields, and must have one\n';

/** The connection ends after the body: a client that still sends would get a reset in place of the answer. */
function refuseHosts(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const headers = { 'Content-Type': 'text/plain;charset=UTF-8', 'Content-Length': TWO_HOSTS.length };
  outgoing.writeHead(400, { ...headers, Connection: 'close' }).write(TWO_HOSTS);
  incoming.resume().once('end', () => outgoing.end());
}

type Address = Pick<HttpServerOptions, 'host' | 'port' | 'variable'>;

function listen(server: Server, address: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => reject(describeListenError(cause, address)));
    server.listen(address.port, address.host, resolve);
  });
}

function describeListenError(cause: NodeJS.ErrnoException, { host, port, variable = 'HTTP_PORT' }: Address): Failure {
  const reason =
    cause.code === 'EADDRINUSE' ? `the port is taken; set ${variable} to another one, or to 0 for any` : cause.message;
  return new Failure('unavailable', `Cannot listen for HTTP on ${host}:${port}: ${reason}`, {}, { cause });
}

interface OpenConnections {
  readonly sockets: ReadonlySet<Socket>;
  readonly answers: OpenAnswers;
}

function followConnections(server: Server): OpenConnections {
  const sockets = new Set<Socket>();
  const answers = createOpenAnswers();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('request', (_, outgoing) => answers.add(outgoing));
  return { sockets, answers };
}

/**
 * An idle connection may have a request in flight: a client cannot know that the server stops until an answer
 * says `Connection: close` (RFC 9112, section 9.6).
 */
async function drain(server: Server, { sockets, answers }: OpenConnections, deadlineMs: number): Promise<void> {
  const cut = setTimeout(() => server.closeAllConnections(), deadlineMs);
  const closeAfter = createCloser();
  for (const outgoing of answers.list()) closeAfter(outgoing);
  server.prependListener('request', (_, outgoing) => closeAfter(outgoing));
  if (sockets.size > 0) await sleep(Math.min(LAST_REQUESTS_MS, deadlineMs));
  const closed = new Promise((resolve) => void server.close(resolve));
  const busy = new Set(answers.list().map(({ req }) => req.socket));
  for (const socket of sockets) if (!busy.has(socket)) socket.destroy();
  await closed;
  clearTimeout(cut);
}

/** Closes connections with their newest answer: with an earlier one, later requests of the connection would get no answer. */
function createCloser(): (outgoing: ServerResponse) => void {
  const last = new WeakMap<Socket, { readonly outgoing: ServerResponse; readonly keepsAlive: boolean }>();
  return (outgoing) => {
    const { socket } = outgoing.req;
    const before = last.get(socket);
    if (before !== undefined) before.outgoing.shouldKeepAlive = before.keepsAlive;
    last.set(socket, { outgoing, keepsAlive: outgoing.shouldKeepAlive });
    outgoing.shouldKeepAlive = false;
    // The head may have been sent already.
    outgoing.once('close', () => {
      if (last.get(socket)?.outgoing === outgoing) socket.destroySoon();
    });
  };
}
