/**
 * The gRPC listener: services over raw message bytes, health, and reflection when asked for. The transport under it is
 * ours (`http2/`), because a general HTTP/2 server costs ten times what a prediction does.
 */
import { readFileSync } from 'node:fs';
import { describeError, Failure } from '../errors.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import type { World } from '../world.ts';
import { createCallCounter } from './call-metrics.ts';
import { createHealth } from './health.ts';
import type { Route } from './http2/base-call.ts';
import { type TlsOptions, Transport } from './http2/transport.ts';
import { createReflection } from './reflection.ts';
import type { GrpcService } from './service.ts';
import { clearUnixSocket } from './unix-socket.ts';

/** PEM files of the listener. With `clientCaFile`, clients must show a certificate that it signed. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile?: string;
}

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
  readonly world: Pick<World, 'randomBytes' | 'nowMs' | 'monotonicMs'>;
  readonly tracing?: Tracing | undefined;
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
  const transport = new Transport({ ...parts, routes: createRoutes(services, parts.metrics) });
  const drain = async (deadlineMs: number): Promise<void> => {
    health.setServing(false);
    await transport.drain(deadlineMs);
  };
  try {
    const { host, port, unixSocket } = parts;
    const tls = parts.tls === undefined ? {} : { tls: readTls(parts.tls) };
    const boundPort = await transport.listen({ host, port, ...tls });
    if (unixSocket !== undefined) {
      await clearUnixSocket(unixSocket);
      await transport.listen({ path: unixSocket });
    }
    return { port: boundPort, setServing: (isServing) => health.setServing(isServing), drain };
  } catch (error) {
    await drain(0);
    throw error;
  }
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

function readTls({ certFile, keyFile, clientCaFile }: TlsFiles): TlsOptions {
  const pair = { cert: readPem(certFile), key: readPem(keyFile) };
  return clientCaFile === undefined ? pair : { ...pair, clientCa: readPem(clientCaFile) };
}

function readPem(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Failure('invalid', `Cannot read the TLS file "${file}": ${describeError(error)}`);
  }
}
