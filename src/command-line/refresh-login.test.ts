/** Commands whose login expires refresh it once, and report its end only when the service has refused it. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ENDED, sendJson, startLoginService, TOKENS } from '../../test/support/programs/login-service.ts';

test('a command that refreshes its login keeps what other commands stored meanwhile', async (t) => {
  const parallel = { 'https://parallel.example': { token: 'parallel' } };
  const cases: [title: string, meanwhile: (url: string) => object][] = [
    ['signed out', () => parallel],
    ['signed in again', (url) => ({ ...parallel, [url]: { token: 'newer', refreshToken: 'r9' } })],
  ];
  for (const [title, meanwhile] of cases) {
    const service = await startLoginService(t, {
      '/oauth/token': (response, url) => {
        service.store({ hosts: meanwhile(url) });
        sendJson(response, TOKENS);
      },
    });
    service.store({ hosts: { [service.url]: ENDED } });
    await service.run(['user', 'list', '--service', service.url]);
    assert.deepEqual(service.readHosts(), meanwhile(service.url), title);
  }
});

test('commands that begin together refresh their login once', async (t) => {
  const service = await startLoginService(t, {
    '/oauth/token': (response) => {
      const isFirst = service.paths.filter((path) => path === '/oauth/token').length === 1;
      sendJson(response, isFirst ? TOKENS : { error: 'invalid_grant' }, isFirst ? 200 : 400);
    },
  });
  service.store({ hosts: { [service.url]: ENDED } });
  const runs = await Promise.all([1, 2, 3].map(() => service.run(['user', 'list', '--service', service.url])));
  for (const { stderr } of runs) assert.doesNotMatch(stderr, /has ended/);
  assert.equal(service.paths.filter((path) => path === '/oauth/token').length, 1);
  assert.equal(service.readHosts()[service.url].refreshToken, 'r2');
});

test('a command does not refresh a login that it could not store', async (t) => {
  const service = await startLoginService(t, { '/oauth/token': (response) => sendJson(response, TOKENS) });
  service.store({ hosts: { [service.url]: ENDED } });
  mkdirSync(join(service.configFolder, 'hosts.lock'));
  const { code, stderr } = await service.run(['user', 'list', '--service', service.url]);
  assert.equal(code, 1);
  assert.match(stderr, /Cannot keep the login in/);
  assert.deepEqual(service.paths, []);
});

test('a login is refreshed and revoked where the metadata of the service says', async (t) => {
  const service = await startLoginService(t, {
    '/.well-known/oauth-authorization-server': (response, url) =>
      sendJson(response, { token_endpoint: `${url}/auth/token`, revocation_endpoint: `${url}/auth/revoke` }),
    '/auth/token': (response) => sendJson(response, TOKENS),
    '/auth/revoke': (response) => response.end(),
  });
  service.store({ hosts: { [service.url]: ENDED } });
  await service.run(['user', 'list', '--service', service.url]);
  assert.equal(service.readHosts()[service.url].token, 'fresh');
  const { stdout } = await service.run(['logout', service.url, '--json']);
  assert.deepEqual(JSON.parse(stdout), { url: service.url, revoked: true });
});

test('a command says that its login has ended only when the service refuses the refresh token', async (t) => {
  const answers: [body: object, status: number][] = [
    [{ error: 'temporarily_unavailable' }, 503],
    [{ error: 'slow_down' }, 429],
    [{ message: 'no route' }, 404],
    [{ error: 'invalid_grant' }, 400],
  ];
  const service = await startLoginService(t, {
    '/oauth/token': (response) => {
      const [body = {}, status = 400] = answers.shift() ?? [];
      sendJson(response, body, status);
    },
  });
  service.store({ hosts: { [service.url]: ENDED } });
  const call = async () => (await service.run(['user', 'list', '--service', service.url])).stderr;
  assert.match(await call(), /cannot answer now \(503\)/);
  assert.match(await call(), /cannot answer now \(429\)/);
  assert.match(await call(), /something else than a Trivet service: check the address/);
  assert.match(await call(), /The login at http:\S+ has ended: invalid_grant/);
});

test('only trivet login says that it cannot sign in at an address that is not of a Trivet service', async (t) => {
  const service = await startLoginService(t, {
    '/.well-known/oauth-authorization-server': (response) => response.writeHead(404).end(),
  });
  service.store({ hosts: { [service.url]: ENDED } });
  const listing = await service.run(['user', 'list', '--service', service.url, '--json']);
  assert.deepEqual(
    [listing.code, listing.stderr],
    [1, `${service.url} answered something else than a Trivet service: check the address\n`],
  );
  assert.match(
    (await service.run(['login', service.url])).stderr,
    /^Cannot sign in to \S+: it is not a Trivet service/,
  );
});
