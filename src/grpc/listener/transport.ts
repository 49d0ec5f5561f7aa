/** Accepts connections on TCP, TLS or a Unix socket, limits them, and routes each request to its method. */
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type SecureContextOptions, type Server as TlsServer } from 'node:tls';
import { ConnectionPlaces } from '../../connections/connection-places.ts';
import { followProgress } from '../../connections/socket-progress.ts';
import { describeError, Failure } from '../../errors.ts';
import { createNetworkReader, type ReadNetwork } from '../../http/client-address.ts';
import type { CountGarbage } from '../../memory/garbage.ts';
import { LinkedQueue } from '../../memory/linked-queue.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import type { World } from '../../world.ts';
import { BufferPool } from '../budget/buffer-pool.ts';
import { LargeMessages } from '../budget/large-messages.ts';
import { MemoryBudget } from '../budget/memory-budget.ts';
import { Turns } from '../budget/turns.ts';
import type { BaseCall, CallDependencies, Route } from '../call/base-call.ts';
import { CollectingCall } from '../call/collecting-call.ts';
import type { EndlessCall } from '../call/endless-call.ts';
import type { Peer } from '../call/peer.ts';
import { type Refusal, RefusedRequest, RefusedRequests, refusalOf } from '../call/refused-request.ts';
import { sendFailure } from '../call/send-failure.ts';
import type { GrpcMethod, GrpcUnaryMethod } from '../call/service.ts';
import { StreamingCall } from '../call/streaming-call.ts';
import { UnaryCall } from '../call/unary-call.ts';
import { WatchCall } from '../call/watch-call.ts';
import { MAX_LIST_BYTES } from '../hpack/hpack-decoder.ts';
import { Http2Connection } from '../http2/connection.ts';
import type { Headers } from '../http2/request-head.ts';
import type { Http2Stream } from '../http2/stream.ts';
import { Decompressor } from '../protocol/decompressor.ts';
import { type GrpcStatus, MAX_SHOWN_LENGTH, statusCodeOf } from '../protocol/status.ts';
import { Handshakes } from './handshakes.ts';
import { LeavingConnections } from './leaving-connections.ts';
import type { TlsOptions } from './tls-files.ts';
import type { SocketPlace } from './unix-socket.ts';

export interface TransportDependencies {
  readonly routes: ReadonlyMap<string, Route>;
  readonly maxMessageBytes: number;
  /** Bytes for unused requests and waiting answers of all connections; at least four of the largest messages. */
  readonly bufferBytes: number;
  /** The limit for all listeners together. */
  readonly maxConnections: number;
  /** Addresses or ranges of proxies, whose connections do not count as those of one network. */
  readonly trustedProxies?: readonly string[] | undefined;
  readonly log: Log;
  readonly world: Pick<World, 'randomBytes' | 'nowMs' | 'monotonicMs'>;
  readonly tracing?: Tracing | undefined;
  readonly countGarbage?: CountGarbage | undefined;
  /** Called when a connection gave its place to another one. */
  readonly countEvicted: () => void;
}

export type ListenAt =
  | { readonly host: string; readonly port: number; readonly tls?: TlsOptions | undefined }
  | SocketPlace;

interface NewRequest {
  readonly stream: Http2Stream;
  readonly headers: Headers | undefined;
  readonly peer: Peer;
}

/** Connections and calls of all listeners. */
export class Transport {
  readonly #dependencies: TransportDependencies;
  readonly #servers: Server[] = [];
  readonly #connections: ConnectionPlaces<Http2Connection>;
  readonly #leaving: LeavingConnections;
  readonly #handshakes: Handshakes;
  readonly #readNetwork: ReadNetwork;
  /** A drain ends these early, since they may last for ever. */
  readonly #endless = new LinkedQueue<EndlessCall>();
  readonly #refused = new RefusedRequests();
  readonly #bufferPool = new BufferPool();
  readonly #turns: Turns;
  readonly #countGarbage: CountGarbage;
  readonly #decompressor: Decompressor;
  readonly #memory: MemoryBudget;
  readonly #largeMessages: LargeMessages;
  /** The server that does the TLS handshakes; it listens nowhere itself. */
  #tlsServer: TlsServer | undefined;
  /** Set when the first listener opens. */
  #following: Disposable | undefined;
  #isDraining = false;

  constructor(dependencies: TransportDependencies) {
    this.#dependencies = dependencies;
    const { maxMessageBytes, maxConnections, world } = dependencies;
    this.#connections = new ConnectionPlaces(maxConnections, world.monotonicMs);
    this.#leaving = new LeavingConnections(maxConnections, world.monotonicMs);
    this.#countGarbage = dependencies.countGarbage ?? (() => {});
    this.#turns = new Turns(world.monotonicMs);
    this.#decompressor = new Decompressor(world.monotonicMs, this.#countGarbage);
    this.#readNetwork = createNetworkReader(dependencies.trustedProxies ?? []);
    const maxHandshakes = Math.ceil(maxConnections * HANDSHAKES_PER_CONNECTION);
    this.#handshakes = new Handshakes(maxHandshakes, this.#readNetwork, world.monotonicMs);
    this.#memory = new MemoryBudget(Math.max(dependencies.bufferBytes, 4 * maxMessageBytes), world.monotonicMs);
    const { maxBytes } = this.#memory;
    this.#largeMessages = new LargeMessages({ maxBytes: maxBytes / 2, maxBytesPerConnection: maxBytes / 4 });
  }

  /** Returns the port, 0 for a unix socket. */
  async listen(at: ListenAt): Promise<number> {
    const isUnixSocket = 'path' in at;
    const accept = (socket: Socket): void => this.#accept(socket, isUnixSocket);
    const tls = isUnixSocket ? undefined : at.tls;
    const server = tls === undefined ? createServer(accept) : this.#createTlsListener(tls, accept);
    await new Promise<void>((resolve, reject) => {
      const where = isUnixSocket ? at.name : `${at.host}:${at.port}`;
      server.once('error', (error) =>
        reject(new Failure('unavailable', `Cannot listen for gRPC on ${where}: ${describeListenError(error, at)}`)),
      );
      server.listen(isUnixSocket ? { path: at.path } : { host: at.host, port: at.port }, resolve);
    });
    server.on('error', (error) => this.#dependencies.log.error({ err: error }, 'The gRPC listener failed'));
    this.#servers.push(server);
    this.#following ??= followProgress(this.#connections);
    const address = server.address();
    return address === null || typeof address === 'string' ? 0 : address.port;
  }

  #createTlsListener(tls: TlsOptions, accept: (socket: Socket) => void): Server {
    const listener = createServer();
    this.#tlsServer = createHandshakeServer(tls, accept);
    this.#handshakes.connect(listener, this.#tlsServer, tls.ca !== undefined);
    return listener;
  }

  /** Sets the certificate of new connections; open connections keep theirs. */
  renewTls(tls: TlsOptions): void {
    this.#tlsServer?.setSecureContext(toContext(tls));
  }

  /** Takes no new connections, ends streams, and resolves when the last call is over, or was ended at the deadline. */
  async drain(deadlineMs: number): Promise<void> {
    this.#isDraining = true;
    const closed = this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
    this.#handshakes.destroyAll();
    for (const call of this.#endless.list()) call.stop();
    this.#refused.stopAll();
    for (const connection of this.#connections) connection.drain();
    const cut = setTimeout(() => {
      this.#handshakes.destroyAll();
      for (const connection of [...this.#connections, ...this.#leaving]) void connection.cut('the server stops');
    }, deadlineMs);
    await Promise.all(closed);
    clearTimeout(cut);
    this.#following?.[Symbol.dispose]();
  }

  #accept(socket: Socket, isUnixSocket: boolean): void {
    const address = isUnixSocket ? undefined : socket.remoteAddress;
    const name = isUnixSocket ? 'unix' : this.#readNetwork(address);
    const network = this.#connections.enter(name);
    if (network === undefined) {
      socket.destroy();
      return;
    }
    const { monotonicMs } = this.#dependencies.world;
    const peer = { isUnixSocket, address };
    const connection = new Http2Connection(socket, {
      monotonicMs,
      bufferPool: this.#bufferPool,
      turns: this.#turns,
      memory: this.#memory,
      network,
      largeMessages: this.#largeMessages,
      countGarbage: this.#countGarbage,
      onRequest: (stream, headers) => this.#startCall({ stream, headers, peer }),
      onFault: (error) => this.#dependencies.log.error({ err: error }, 'A gRPC connection failed'),
      onEvicted: () => {
        this.#dependencies.countEvicted();
        this.#leaving.add(connection, name);
      },
      onClosed: () => {
        this.#connections.delete(connection);
        this.#leaving.delete(connection);
      },
    });
    this.#connections.add(connection, name);
    if (this.#isDraining) connection.drain();
  }

  #startCall({ stream, headers, peer }: NewRequest): void {
    if (headers === undefined) {
      sendFailure(stream, HEADERS_TOO_LARGE, false);
      return;
    }
    const refusal = refusalOf(headers);
    if (refusal !== undefined) {
      this.#refuse(stream, headers, refusal);
      return;
    }
    const path = headers.get(':path') ?? '';
    const route = this.#dependencies.routes.get(path);
    if (route === undefined) {
      sendFailure(stream, describeUnimplemented(path), false);
      return;
    }
    const { log, world, tracing } = this.#dependencies;
    const maxMessageBytes = Math.min(this.#dependencies.maxMessageBytes, route.method.maxMessageBytes ?? Infinity);
    const decompressor = this.#decompressor;
    const onEnd = this.#forget;
    const exchange = { stream, headers, route, peer, maxMessageBytes, decompressor, log, world, tracing, onEnd };
    this.#openCall(exchange, route.method);
  }

  #refuse(stream: Http2Stream, headers: Headers, refusal: Refusal): void {
    const request = new RefusedRequest({ stream, headers, refusal, onEnd: this.#forgetRefused });
    stream.listener = request;
    if (this.#isDraining) request.stop();
    else this.#refused.add(request);
  }

  #openCall(dependencies: CallDependencies, method: GrpcMethod): void {
    if (method.kind === 'unary') {
      const call = new UnaryCall(dependencies, method);
      dependencies.stream.listener = call;
      call.open();
      return;
    }
    const call = createEndlessCall(dependencies, method);
    dependencies.stream.listener = call;
    this.#endless.add(call);
    call.open();
    if (!(call instanceof WatchCall)) call.run();
    if (this.#isDraining) call.stop();
  }

  readonly #forget = (call: BaseCall): void => {
    if (isEndless(call)) this.#endless.delete(call);
  };

  readonly #forgetRefused = (request: RefusedRequest): void => this.#refused.delete(request);
}

function createEndlessCall(dependencies: CallDependencies, method: Exclude<GrpcMethod, GrpcUnaryMethod>) {
  if (method.kind === 'watch') return new WatchCall(dependencies, method);
  return method.kind === 'stream' ? new StreamingCall(dependencies, method) : new CollectingCall(dependencies, method);
}

function isEndless(call: BaseCall): call is Exclude<BaseCall, UnaryCall> & EndlessCall {
  return !(call instanceof UnaryCall);
}

function describeListenError(error: NodeJS.ErrnoException, at: ListenAt): string {
  if ('path' in at) return describeError(error).replace(at.path, at.name);
  if (error.code !== 'EADDRINUSE') return describeError(error);
  return 'the port is taken; set GRPC_PORT to another one, or to 0 for any';
}

const HANDSHAKES_PER_CONNECTION = 0.25;

/** Calls back with each connection whose handshake is done. */
function createHandshakeServer(tls: TlsOptions, accept: (socket: Socket) => void): TlsServer {
  const isMutual = tls.ca !== undefined;
  const rules = {
    requestCert: isMutual,
    rejectUnauthorized: isMutual,
    ALPNProtocols: ['h2'],
  };
  return createTlsServer({ ...toContext(tls), ...rules }, (socket) => {
    // RFC 9113, section 9.2.1.
    socket.disableRenegotiation();
    accept(socket);
  });
}

/**
 * The ciphers of TLS 1.3, and those of TLS 1.2 that HTTP/2 allows (RFC 9113, section 9.2.2): with others, the private key is used
 * for the client's second message, which waits for no turn.
 */
const CIPHERS =
  'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20';

function toContext(tls: TlsOptions): SecureContextOptions {
  return { ...tls, minVersion: 'TLSv1.2', ciphers: CIPHERS };
}

const HEADERS_TOO_LARGE: GrpcStatus = {
  code: statusCodeOf('RESOURCE_EXHAUSTED'),
  details: `Cannot answer: the headers have more than ${MAX_LIST_BYTES} bytes`,
};

function describeUnimplemented(path: string): GrpcStatus {
  const details = `Cannot answer: there is no method ${path.slice(0, MAX_SHOWN_LENGTH)}`;
  return { code: statusCodeOf('UNIMPLEMENTED'), details };
}
