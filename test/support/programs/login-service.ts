/** A service as `trivet login` and commands see it: a device flow, whose other answers a test gives, and a folder of logins. */
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { runTrivet } from './run-trivet.ts';

export const TOKENS = { access_token: 'fresh', refresh_token: 'r2', expires_in: 3600, scope: 'admin' };
/** A login whose token has ended and can be refreshed. */
export const ENDED = { token: 'old', refreshToken: 'r1', expiresAtMs: 0 };

export type Answer = (response: ServerResponse, url: string) => void;

/** A service with a device flow whose other answers a test gives; a connection breaks where it gives none. */
export async function startLoginService(t: TestContext, answers: Readonly<Record<string, Answer>>) {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-login-'));
  const paths: string[] = [];
  const all: Readonly<Record<string, Answer>> = {
    '/.well-known/oauth-authorization-server': (response, url) =>
      sendJson(response, { device_authorization_endpoint: `${url}/device`, token_endpoint: `${url}/oauth/token` }),
    '/device': (response, url) =>
      sendJson(response, { device_code: 'd', user_code: 'ABCD', verification_uri: `${url}/confirm`, interval: 0 }),
    ...answers,
  };
  const service = createServer((request, response) => {
    const path = request.url ?? '';
    paths.push(path);
    const answer = all[path];
    if (answer === undefined) response.destroy();
    else answer(response, `http://${request.headers.host}`);
  }).listen(0, '127.0.0.1');
  t.after(() => {
    service.close();
    rmSync(folder, { recursive: true });
  });
  await once(service, 'listening');
  const file = join(folder, 'trivet', 'hosts.json');
  mkdirSync(join(folder, 'trivet'));
  return {
    url: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
    paths,
    configFolder: join(folder, 'trivet'),
    run: (argv: readonly string[], input = '', env: Readonly<Record<string, string>> = {}) =>
      runTrivet(argv, { env: { XDG_CONFIG_HOME: folder, TRIVET_DATA_DIR: join(folder, 'no-store'), ...env }, input }),
    store: (logins: object) => writeFileSync(file, JSON.stringify(logins)),
    readHosts: () => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).hosts : {}),
  };
}

export function sendJson(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

/** What the service answers until it has started. */
export function answerStarting(response: ServerResponse): void {
  response.writeHead(503, { 'Content-Type': 'text/plain', 'Retry-After': '1' }).end('Starting\n');
}
