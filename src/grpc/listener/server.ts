/**
 * Opens the gRPC listener with its services, health and reflection, and drains it on shutdown. The HTTP/2 transport is
 * our own (`http2/`), because a general HTTP/2 server costs ten times as much as a prediction.
 */
import { Counter } from 'prom-client';
import { describeError } from '../../errors.ts';
import type { CountGarbage } from '../../memory/garbage.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import type { World } from '../../world.ts';
import type { Route } from '../call/base-call.ts';
import { createCallCounter } from '../call/call-metrics.ts';
import type { GrpcService } from '../call/service.ts';
import { createHealth } from '../services/health.ts';
import { createReflection } from '../services/reflection.ts';
import { readTls, type TlsFiles, watchTls } from './tls-files.ts';
import { Transport } from './transport.ts';
import { openUnixSocket } from './unix-socket.ts';

export interface GrpcServerDependencies {
  readonly services: readonly GrpcService[];
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Path of a unix socket to listen on too; without TLS. */
  readonly unixSocket?: string | undefined;
  /** Permissions of the unix socket; by default those that the umask leaves. */
  readonly unixSocketMode?: number | undefined;
  readonly tls?: TlsFiles | undefined;
  /** How often the TLS files are checked for a change; 10 s unless given. */
  readonly tlsCheckMs?: number;
  readonly maxMessageBytes: number;
  /** Bytes of memory for requests that are not used yet and answers that wait for a window; 64 MiB unless given. */
  readonly bufferBytes?: number;
  /** The most connections; 1,000 unless given. */
  readonly maxConnections?: number;
  /** Addresses or ranges of proxies, whose connections do not count as those of one network; none unless given. */
  readonly trustedProxies?: readonly string[] | undefined;
  /** The compiled `proto/`, when reflection is served. */
  readonly reflection?: Uint8Array | undefined;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly world: Pick<World, 'randomBytes' | 'nowMs' | 'monotonicMs'>;
  readonly tracing?: Tracing | undefined;
  /** Called with the number of bytes that were read, which are soon garbage. */
  readonly countGarbage?: CountGarbage | undefined;
}

export interface GrpcServer {
  readonly port: number;
  /** Sets the answer of `grpc.health.v1.Health`, which is not serving at first. */
  setServing(isServing: boolean): void;
  /** Takes no new calls, ends streams, waits for running calls and ends those that are left at the deadline. May be called twice. */
  drain(deadlineMs: number): Promise<void>;
}

const TLS_CHECK_MS = 10_000;
const BUFFER_BYTES = 67_108_864;
const MAX_CONNECTIONS = 1000;

/** Starts the server, which listens once this resolves. */
export async function openGrpcServer(dependencies: GrpcServerDependencies): Promise<GrpcServer> {
  const health = createHealth(dependencies.services.map((service) => service.name));
  const own = [...dependencies.services, health.service];
  const names = own.map((service) => service.name);
  const services =
    dependencies.reflection === undefined ? own : [...own, ...createReflection(dependencies.reflection, names)];
  const transport = new Transport({
    ...dependencies,
    bufferBytes: dependencies.bufferBytes ?? BUFFER_BYTES,
    maxConnections: dependencies.maxConnections ?? MAX_CONNECTIONS,
    routes: createRoutes(services, dependencies.metrics),
    countEvicted: createEvictionCounter(dependencies.metrics),
  });
  let stopWatching = (): void => {};
  let removeUnixSocket = (): void => {};
  const drain = async (deadlineMs: number): Promise<void> => {
    stopWatching();
    removeUnixSocket();
    health.setServing(false);
    await transport.drain(deadlineMs);
  };
  try {
    const { host, port, unixSocket, unixSocketMode, tls } = dependencies;
    const boundPort = await transport.listen({ host, port, tls: tls && readTls(tls) });
    if (tls !== undefined)
      stopWatching = watchTls(tls, dependencies.tlsCheckMs ?? TLS_CHECK_MS, () =>
        renewTls(transport, tls, dependencies.log),
      );
    if (unixSocket !== undefined)
      removeUnixSocket = await openUnixSocket(unixSocket, unixSocketMode, (at) => transport.listen(at));
    return { port: boundPort, setServing: (isServing) => health.setServing(isServing), drain };
  } catch (error) {
    await drain(0);
    throw error;
  }
}

/** If key and certificate do not match, only one of the files has changed yet: the former pair is used until the other follows. */
function renewTls(transport: Transport, files: TlsFiles, log: Log): void {
  try {
    transport.renewTls(readTls(files));
    log.info({ certFile: files.certFile }, 'gRPC uses a new certificate');
  } catch (error) {
    log.warn({ reason: describeError(error) }, 'gRPC keeps its certificate');
  }
}

function createEvictionCounter(metrics: Metrics): () => void {
  const counter = new Counter({
    name: 'trivet_grpc_connections_evicted_total',
    help: 'gRPC connections that gave their place to another client, since all places were taken.',
    registers: [metrics],
  });
  return () => counter.inc();
}

function createRoutes(services: readonly GrpcService[], metrics: Metrics): ReadonlyMap<string, Route> {
  const countCalls = createCallCounter(metrics);
  const routes = services.flatMap((service) =>
    service.methods.map((method): Route => {
      const path = `/${service.name}/${method.name}`;
      return { path, method, count: countCalls(service.name, method.name) };
    }),
  );
  return new Map(routes.map((route) => [route.path, route]));
}
