/** `trivet login` keeps the token of a code that was confirmed, whatever fails afterwards. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runTrivet } from '../../test/support/programs/run-trivet.ts';

/** A service whose connection breaks when it is asked for the person. */
function answer(request: IncomingMessage, response: ServerResponse): void {
  const url = `http://${request.headers.host}`;
  const answers: Readonly<Record<string, object>> = {
    '/.well-known/oauth-authorization-server': {
      device_authorization_endpoint: `${url}/device`,
      token_endpoint: `${url}/token`,
    },
    '/device': { device_code: 'd', user_code: 'ABCD', verification_uri: `${url}/confirm`, interval: 0 },
    '/token': { access_token: 'the-only-copy', refresh_token: 'r', expires_in: 3600, scope: 'admin' },
  };
  const found = answers[request.url ?? ''];
  if (found === undefined) response.destroy();
  else response.setHeader('Content-Type', 'application/json').end(JSON.stringify(found));
}

test('trivet login keeps the token of a confirmed code also when the name of its person cannot be read', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-login-'));
  const service = createServer(answer).listen(0, '127.0.0.1');
  t.after(() => {
    service.close();
    rmSync(folder, { recursive: true });
  });
  await once(service, 'listening');
  const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  const { code, stderr } = await runTrivet(['login', url], { env: { XDG_CONFIG_HOME: folder } });
  assert.equal(code, 1);
  assert.match(stderr, /confirm the code ABCD\nCannot reach http:/);
  const { hosts } = JSON.parse(readFileSync(join(folder, 'trivet', 'hosts.json'), 'utf8'));
  assert.equal(hosts[url].token, 'the-only-copy');
});
