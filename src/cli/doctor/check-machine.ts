/** Checks ports, disk, files of settings, expiry of the certificate, proxies, callers and addresses for `trivet doctor`. */
import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import type { Config } from '../../config/config.ts';
import { describeError } from '../../errors.ts';
import { nameTlsFiles, readTls } from '../../grpc/listener/tls-files.ts';
import { hostOf } from '../../ip/ip-address.ts';
import { maskPasswords } from '../../mask-passwords.ts';
import { type Check, fail, ok, warn } from './check.ts';
import { checkAuthorities, checkServerList } from './check-files.ts';
import { checkPorts, checkUnixSocket } from './check-ports.ts';

export async function checkMachine(config: Config, nowMs: number): Promise<Check[]> {
  return [
    ...(await checkPorts(config)),
    ...(await checkUnixSocket(config)),
    ...(await checkDisk(config)),
    ...checkCertificate(config, nowMs),
    ...checkAuthorities(config),
    ...(await checkServerList(config)),
    ...checkProxies(config),
    ...checkCallers(config),
    checkAddresses(config),
  ];
}

const MIB = 1_048_576;
const FEW_MIB = 1024;
const TOO_FEW_MIB = 100;

/** With PostgreSQL the service stores nothing in the folder. */
async function checkDisk({ store }: Config): Promise<Check[]> {
  if (store.databaseUrl !== undefined || !existsSync(store.dataDir)) return [];
  const { bavail, bsize } = await statfs(store.dataDir);
  const freeMib = Math.floor((bavail * bsize) / MIB);
  const found = `${freeMib} MiB are free in "${store.dataDir}"`;
  const advice = 'Make room, or move the folder: without room nothing is stored';
  if (freeMib < TOO_FEW_MIB) return [fail('disk', found, advice)];
  return [freeMib < FEW_MIB ? warn('disk', found, advice) : ok('disk', found)];
}

const DAY_MS = 86_400_000;
const SOON_DAYS = 14;

/** Reads the files as the service does when it starts. */
function checkCertificate({ grpc }: Config, nowMs: number): Check[] {
  const files = nameTlsFiles(grpc);
  if (files === undefined) return [];
  const name = 'TLS certificate';
  try {
    const { validTo } = new X509Certificate(readTls(files).cert);
    const days = Math.floor((Date.parse(validTo) - nowMs) / DAY_MS);
    const found = `"${files.certFile}" ends ${new Date(validTo).toISOString()}`;
    const advice = 'Put a new certificate in its place; the service reads it again by itself';
    if (days < 0) return [fail(name, found, advice)];
    return [days < SOON_DAYS ? warn(name, found, advice) : ok(name, found)];
  } catch (error) {
    const advice =
      'Set GRPC_TLS_CERT_FILE and GRPC_TLS_KEY_FILE to a certificate and its key, and GRPC_TLS_CLIENT_CA_FILE to the certificates of authorities, all in PEM form';
    return [fail(name, describeError(error), advice)];
  }
}

function checkProxies({ server: { baseUrl, authUrl, trustedProxies } }: Config): Check[] {
  const name = 'trusted proxies';
  const isBehindProxy = [baseUrl, authUrl].some((url) => url?.startsWith('https:'));
  if (trustedProxies.length > 0) return [ok(name, trustedProxies.join(', '))];
  if (!isBehindProxy) return [checkPlainAddress(name, authUrl)];
  const advice = 'Set TRUSTED_PROXIES to its address: otherwise limits and the audit log take all callers for one';
  return [warn(name, 'BASE_URL or AUTH_URL is https, so a proxy is in front, and none is trusted', advice)];
}

/** Checks that cookies of people do not cross a network unencrypted. */
function checkPlainAddress(name: string, authUrl: string | undefined): Check {
  if (authUrl === undefined || LOOPBACK.test(hostOf(new URL(authUrl))))
    return ok(name, 'none, and the address is not https');
  const advice = 'Put a proxy with https in front, and set AUTH_URL to its address, or keep the network to yourself';
  const found = `AUTH_URL is ${authUrl}: passwords and sessions of people travel without encryption`;
  return warn(name, maskPasswords(found), advice);
}

const LOOPBACK = /^(127\.|::1$|localhost$)/;

function checkCallers({ server: { host }, prediction: { auth } }: Config): Check[] {
  if (auth !== 'off' || LOOPBACK.test(host)) return [ok('callers', `PREDICTION_AUTH is ${auth}, HOST is ${host}`)];
  const advice = 'Keep others out by the network, or set PREDICTION_AUTH=on';
  return [
    warn(
      'callers',
      `PREDICTION_AUTH is off, and HOST is ${host}: anyone who reaches it may predict and report`,
      advice,
    ),
  ];
}

/** Checks the addresses in links. Without settings they have the port of the service, which a container may publish as another one. */
function checkAddresses({ server: { host, httpPort, baseUrl, authUrl } }: Config): Check {
  const name = 'addresses';
  const absent = [baseUrl === undefined ? 'BASE_URL' : '', authUrl === undefined ? 'AUTH_URL' : ''].filter(Boolean);
  if (absent.length === 0) return ok(name, maskPasswords(`BASE_URL is ${baseUrl}, AUTH_URL is ${authUrl}`));
  if (LOOPBACK.test(host)) return ok(name, `links lead to port ${httpPort} of this machine`);
  const found = `HOST is ${host}, and ${absent.join(' and ')} ${absent.length === 1 ? 'is' : 'are'} not set: links on pages, in mails and in events lead to port ${httpPort} of this machine`;
  return warn(name, found, 'Set them to the address, with the published port, at which others reach the service');
}
