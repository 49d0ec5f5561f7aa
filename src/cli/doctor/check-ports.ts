/** Checks for `trivet doctor` that the service can listen at its ports and its unix socket, or already does. */
import { once } from 'node:events';
import { connect, type SecureClientSessionOptions as SessionOptions } from 'node:http2';
import { connect as connectSocket, createServer, type ListenOptions } from 'node:net';
import type { Config } from '../../config/config.ts';
import { type HttpPort, listHttpPorts } from '../../config/http-ports.ts';
import { describeError } from '../../errors.ts';
import { checkSocketFree, nameBeside } from '../../grpc/listener/unix-socket.ts';
import { toUrlHost } from '../../ip/ip-address.ts';
import { type Check, fail, ok } from './check.ts';

interface Port extends HttpPort {
  /** Whether a Trivet service answers at the port. */
  readonly isOurs: () => Promise<boolean>;
}

export async function checkPorts(config: Config): Promise<Check[]> {
  const [http, ...others] = listHttpPorts(config);
  const { grpcPort } = config.server;
  const ports: Port[] = [
    { ...http!, isOurs: () => answersHttp(config) },
    { name: 'gRPC port', variable: 'GRPC_PORT', port: grpcPort, isOurs: () => answersGrpc(config) },
    ...others.map((other) => ({ ...other, isOurs: () => answersHealth(config, other.port) })),
  ];
  return await Promise.all(ports.map((port) => checkPort(config.server.host, port)));
}

/** Listens where the service would first create its socket, so that a missing or unwritable folder is found too. */
export async function checkUnixSocket(config: Config): Promise<Check[]> {
  const path = config.grpc.unixSocket;
  if (path === undefined) return [];
  const name = 'unix socket';
  try {
    await checkSocketFree(path);
  } catch (error) {
    if (await answersAtSocket(config, path)) return [ok(name, `"${path}" is in use, and a Trivet service runs here`)];
    return [fail(name, describeError(error), 'Stop that program, remove the file, or set GRPC_UNIX_SOCKET')];
  }
  const error = await findListenError({ path: nameBeside(path) });
  if (error === undefined) return [ok(name, `"${path}" is free`)];
  const advice = 'Set GRPC_UNIX_SOCKET to a path of at most 107 bytes in a folder that this user may write';
  return [fail(name, `"${path}" cannot be opened: ${describeError(error)}`, advice)];
}

async function checkPort(host: string, { name, variable, port, isOurs }: Port): Promise<Check> {
  const place = `${host}:${port}`;
  const error = await findListenError({ host, port });
  if (error === undefined) return ok(name, `${place} is free`);
  if (error.code !== 'EADDRINUSE') return refuse(name, { place, variable, error });
  if (await isOurs()) return ok(name, `${place} is in use, and a Trivet service runs here`);
  return fail(name, `${place} is in use by another program`, `Stop it, or set ${variable}`);
}

interface Refusal {
  readonly place: string;
  readonly variable: string;
  readonly error: NodeJS.ErrnoException;
}

function refuse(name: string, { place, variable, error }: Refusal): Check {
  const found = `${place} cannot be opened: ${describeError(error)}`;
  if (error.code === 'EACCES')
    return fail(name, found, `Set ${variable} to a port above 1023, or give the program CAP_NET_BIND_SERVICE`);
  return fail(name, found, 'Set HOST to an address of this machine, or to 0.0.0.0 or :: for all of them');
}

async function findListenError(at: ListenOptions): Promise<NodeJS.ErrnoException | undefined> {
  const server = createServer();
  try {
    await once(server.listen(at), 'listening');
    return undefined;
  } catch (error) {
    return error as NodeJS.ErrnoException;
  } finally {
    server.close();
  }
}

const TIMEOUT_MS = 2000;

function toLocalUrl(scheme: string, host: string, port: number): string {
  return `${scheme}://${toUrlHost(host)}:${port}`;
}

async function answersHttp({ server: { host, httpPort } }: Config): Promise<boolean> {
  try {
    const url = `${toLocalUrl('http', host, httpPort)}/openapi.json`;
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return ((await response.json()) as { readonly info?: { readonly title?: string } }).info?.title === 'Trivet';
  } catch {
    return false;
  }
}

/** The probe only shows that a process is alive, so the HTTP port must be that of a service too. */
async function answersHealth(config: Config, port: number): Promise<boolean> {
  try {
    const url = `${toLocalUrl('http', config.server.host, port)}/healthz`;
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return ((await response.json()) as { readonly status?: string }).status === 'ok' && (await answersHttp(config));
  } catch {
    return false;
  }
}

/** A server that requires client certificates cannot be queried: then the HTTP port decides. */
async function answersGrpc(config: Config): Promise<boolean> {
  if (config.grpc.tlsClientCaFile !== undefined) return await answersHttp(config);
  const { host, grpcPort, parts } = config.server;
  const url = toLocalUrl(config.grpc.tlsCertFile === undefined ? 'http' : 'https', host, grpcPort);
  return await knowsService(url, nameService(parts)).catch(() => false);
}

/** A gRPC service that only this program has. */
function nameService(parts: Config['server']['parts']): string {
  return parts.includes('prediction') ? 'prediction.v1.PredictionService' : '';
}

/** The unix socket has no TLS. */
async function answersAtSocket({ server: { parts } }: Config, path: string): Promise<boolean> {
  const socket = connectSocket(path);
  return await knowsService('http://localhost', nameService(parts), { createConnection: () => socket }).catch(
    () => false,
  );
}

/** Calls `grpc.health.v1.Health/Check`, which answers NOT_FOUND for a service that the server does not have. */
async function knowsService(url: string, service: string, options: SessionOptions = {}): Promise<boolean> {
  // The certificate has the address at which clients reach the service, which may differ from this one.
  const session = connect(url, { rejectUnauthorized: false, ...options });
  session.on('error', () => {});
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    await once(session, 'connect', { signal });
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('error', () => {});
    stream.end(encodeCheck(service)).resume();
    const [trailers] = (await once(stream, 'trailers', { signal })) as [Record<string, string>];
    return trailers['grpc-status'] === '0';
  } finally {
    session.destroy();
  }
}

/** A gRPC message (5 bytes of prefix) with a HealthCheckRequest, whose field 1 is the name. */
function encodeCheck(service: string): Buffer {
  const name = Buffer.from(service);
  const message = name.length === 0 ? name : Buffer.concat([Buffer.from([0x0a, name.length]), name]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}
