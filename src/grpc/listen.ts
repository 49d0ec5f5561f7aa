import { existsSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { type Server, ServerCredentials } from '@grpc/grpc-js';
import { describeError, Failure } from '../errors.ts';

/** PEM files of the listener. With `clientCaFile`, clients must show a certificate that it signed. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile?: string;
}

/** A transport that listens. */
export interface Listener {
  readonly server: Server;
  readonly port: number;
}

/** Binds a TCP address; port 0 takes any free one. */
export async function bindTcp(server: Server, at: { host: string; port: number }, tls?: TlsFiles): Promise<Listener> {
  const host = at.host.includes(':') ? `[${at.host}]` : at.host;
  const credentials = tls === undefined ? ServerCredentials.createInsecure() : readTls(tls);
  const port = await bind(server, `${host}:${at.port}`, credentials);
  return { server, port };
}

/** Binds a unix socket. A socket file that nobody listens on any more is taken over. */
export async function bindUnixSocket(server: Server, path: string): Promise<Listener> {
  if (existsSync(path)) {
    if (await isListening(path)) throw new Failure('conflict', `Cannot listen on "${path}": another program does`);
    rmSync(path);
  }
  return { server, port: await bind(server, `unix:${path}`, ServerCredentials.createInsecure()) };
}

function bind(server: Server, address: string, credentials: ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, port) => {
      if (error === null) resolve(port);
      else reject(new Failure('unavailable', `Cannot listen for gRPC on ${address}: ${describeError(error)}`));
    });
  });
}

/** Takes no new calls, waits for those under way, and at the deadline cuts the connections that are left. */
export function shutDown({ server }: Listener, deadlineMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.forceShutdown(), deadlineMs);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function readTls(tls: TlsFiles): ServerCredentials {
  const clientCa = tls.clientCaFile === undefined ? null : readPem(tls.clientCaFile);
  const pair = { cert_chain: readPem(tls.certFile), private_key: readPem(tls.keyFile) };
  return ServerCredentials.createSsl(clientCa, [pair], clientCa !== null);
}

function readPem(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Failure('invalid', `Cannot read the TLS file "${file}": ${describeError(error)}`);
  }
}
