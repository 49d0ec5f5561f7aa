/**
 * The gRPC listener: services over `@grpc/grpc-js`, messages as raw bytes. Health, and reflection when asked for, are
 * served beside them. Nothing outside this folder knows the library, so that the transport can be replaced.
 */
import { Metadata, Server } from '@grpc/grpc-js';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { World } from '../world.ts';
import { createCallCounter } from './call-metrics.ts';
import { createHealth, type Health } from './health.ts';
import { bindTcp, bindUnixSocket, type Listener, shutDown, type TlsFiles } from './listen.ts';
import { MethodServer } from './method-server.ts';
import { createReflection } from './reflection.ts';
import type { GrpcService } from './service.ts';

export interface GrpcServerParts {
  readonly services: readonly GrpcService[];
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Path of a unix socket to listen on too; without TLS. */
  readonly unixSocket?: string | undefined;
  readonly tls?: TlsFiles | undefined;
  readonly maxMessageBytes: number;
  /** The compiled `proto/`, when reflection is served. */
  readonly reflection?: Uint8Array | undefined;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly world: Pick<World, 'randomBytes'>;
}

export interface GrpcServer {
  readonly port: number;
  /** What `grpc.health.v1.Health` says. It starts as not serving. */
  setServing(isServing: boolean): void;
  /** Takes no new calls, ends streams, waits for calls under way and cuts what is left at the deadline. May be called twice. */
  drain(deadlineMs: number): Promise<void>;
}

/** Listens from its return on. */
export async function openGrpcServer(parts: GrpcServerParts): Promise<GrpcServer> {
  const health = createHealth(parts.services.map((service) => service.name));
  const own = [...parts.services, health.service];
  const names = own.map((service) => service.name);
  const services = parts.reflection === undefined ? own : [...own, ...createReflection(parts.reflection, names)];
  const methods = createMethodServer(parts);

  const listeners: Listener[] = [];
  const drain = createDrain(listeners, methods, health);
  // One transport for each listener: who came through the socket file is known by where it came in, not by what it says.
  const createTransport = (isUnixSocket: boolean): Server => {
    const server = createServer(parts.maxMessageBytes);
    for (const service of services) methods.register(server, service, isUnixSocket);
    return server;
  };
  try {
    const tcp = await bindTcp(createTransport(false), parts, parts.tls);
    listeners.push(tcp);
    if (parts.unixSocket !== undefined) listeners.push(await bindUnixSocket(createTransport(true), parts.unixSocket));
    return { port: tcp.port, setServing: (isServing) => health.setServing(isServing), drain };
  } catch (error) {
    await drain(0);
    throw error;
  }
}

function createMethodServer({ log, metrics, world }: GrpcServerParts): MethodServer {
  return new MethodServer({ log, world, countCalls: createCallCounter(metrics), createMetadata: () => new Metadata() });
}

function createServer(maxMessageBytes: number): Server {
  return new Server({
    'grpc.max_receive_message_length': maxMessageBytes,
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': 1024,
    // Finds callers that vanished without a word.
    'grpc.keepalive_time_ms': 60_000,
    'grpc.keepalive_timeout_ms': 20_000,
    // Nobody reads this bookkeeping, but without it the library does not find its connections to cut them at the end.
    'grpc.enable_channelz': 1,
  });
}

function createDrain(listeners: readonly Listener[], methods: MethodServer, health: Health): GrpcServer['drain'] {
  let drained: Promise<unknown> | undefined;
  return async (deadlineMs) => {
    health.setServing(false);
    methods.stopStreams();
    drained ??= Promise.all(listeners.map((listener) => shutDown(listener, deadlineMs)));
    await drained;
  };
}
