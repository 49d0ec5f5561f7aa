/** `trivet login` and `trivet logout` beside other commands, and at a service that cannot answer for a while. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runTrivet } from '../../test/support/programs/run-trivet.ts';

const TOKENS = { access_token: 'fresh', refresh_token: 'r2', expires_in: 3600, scope: 'admin' };
const LOCKS = new URL('../database/startup/file-lock.ts', import.meta.url).href;
const HOLD_LOCK = `import { tryLockFile } from '${LOCKS}'; globalThis.lock = tryLockFile(process.argv[1]);
  process.stdout.write('locked'); setInterval(() => {}, 1000);`;
const ENDED = { token: 'old', refreshToken: 'r1', expiresAtMs: 0 };

type Answer = (response: ServerResponse, url: string) => void;

/** A service with a device flow whose other answers a test gives; a connection breaks where it gives none. */
async function startService(t: TestContext, answers: Readonly<Record<string, Answer>>) {
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

function sendJson(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

/** What the service answers until it has started. */
function answerStarting(response: ServerResponse): void {
  response.writeHead(503, { 'Content-Type': 'text/plain', 'Retry-After': '1' }).end('Starting\n');
}

test('trivet login keeps the token of a confirmed code also when the name of its person cannot be read', async (t) => {
  const service = await startService(t, { '/oauth/token': (response) => sendJson(response, TOKENS) });
  const { code, stderr } = await service.run(['login', service.url]);
  assert.equal(code, 1);
  assert.match(stderr, /confirm the code ABCD\nCannot reach http:/);
  assert.equal(service.readHosts()[service.url].token, 'fresh');
});

test('trivet login keeps what other commands stored while its person confirmed the code', async (t) => {
  const service = await startService(t, {
    '/oauth/token': (response) => {
      service.store({ hosts: { 'https://parallel.example': { token: 'parallel' } } });
      sendJson(response, TOKENS);
    },
    '/api/v5/user': (response) => sendJson(response, { login: 'ada' }),
  });
  service.store({ hosts: { 'https://signed-out.example': { token: 'gone' } } });
  const { code, stderr } = await service.run(['login', service.url]);
  assert.equal(code, 0, stderr);
  assert.deepEqual(Object.keys(service.readHosts()), ['https://parallel.example', service.url]);
});

test('a command that refreshes its login keeps what other commands stored meanwhile', async (t) => {
  const parallel = { 'https://parallel.example': { token: 'parallel' } };
  const cases: [title: string, meanwhile: (url: string) => object][] = [
    ['signed out', () => parallel],
    ['signed in again', (url) => ({ ...parallel, [url]: { token: 'newer', refreshToken: 'r9' } })],
  ];
  for (const [title, meanwhile] of cases) {
    const service = await startService(t, {
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
  const service = await startService(t, {
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

test('logins that are stored together are all kept, also after a command that was killed while it stored one', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const answers = names.map((name): [string, Answer] => [
    `/${name}/api/v5/user`,
    (response) => sendJson(response, { login: name }),
  ]);
  const service = await startService(t, Object.fromEntries(answers));
  const holder = spawn(process.execPath, [
    '--input-type=module',
    '-e',
    HOLD_LOCK,
    join(service.configFolder, 'hosts.lock'),
  ]);
  await once(holder.stdout, 'data');
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  const runs = await Promise.all(
    names.map((name) => service.run(['login', `${service.url}/${name}`, '--with-token'], 'a-token')),
  );
  assert.deepEqual(
    runs.map(({ stderr }) => stderr),
    names.map(() => ''),
  );
  assert.deepEqual(
    Object.keys(service.readHosts()).sort(),
    names.map((name) => `${service.url}/${name}`),
  );
});

const unwritable: [what: string, spoil: (folder: string) => Readonly<Record<string, string>>, message: RegExp][] = [
  ['without a home', () => ({ XDG_CONFIG_HOME: '', HOME: '' }), /neither XDG_CONFIG_HOME nor HOME is set/],
  [
    'with a damaged file',
    (folder) => {
      writeFileSync(join(folder, 'hosts.json'), '{');
      return {};
    },
    /Cannot read the logins in/,
  ],
  [
    'where no file can be made',
    (folder) => {
      rmSync(folder, { recursive: true });
      writeFileSync(folder, '');
      return {};
    },
    /Cannot keep the login in/,
  ],
];
for (const [what, spoil, message] of unwritable)
  test(`trivet login fails before its person confirms a code, ${what}`, async (t) => {
    const service = await startService(t, { '/oauth/token': (response) => sendJson(response, TOKENS) });
    const { code, stderr } = await service.run(['login', service.url], '', spoil(service.configFolder));
    assert.notEqual(code, 0);
    assert.match(stderr, message);
    assert.deepEqual(service.paths, []);
  });

test('a command does not refresh a login that it could not store', async (t) => {
  const service = await startService(t, { '/oauth/token': (response) => sendJson(response, TOKENS) });
  service.store({ hosts: { [service.url]: ENDED } });
  mkdirSync(join(service.configFolder, 'hosts.lock'));
  const { code, stderr } = await service.run(['user', 'list', '--service', service.url]);
  assert.equal(code, 1);
  assert.match(stderr, /Cannot keep the login in/);
  assert.deepEqual(service.paths, []);
});

test('the token of the environment goes to the service that the environment names, and to no other', async (t) => {
  const service = await startService(t, {});
  const run = async (TRIVET_URL: string) =>
    (await service.run(['user', 'list', '--service', service.url], '', { TRIVET_TOKEN: 'a-token', TRIVET_URL })).stderr;
  for (const other of ['https://other.example', 'http://trivet:8080', 'not an address'])
    assert.ok((await run(other)).includes(`is for the service of TRIVET_URL (${other}), not for this one; sign in`));
  assert.deepEqual(service.paths, []);
  for (const named of ['', `${service.url}/`]) assert.match(await run(named), /^Cannot reach http:/);
});

test('an address in the environment that a command does not use cannot end it', async (t) => {
  const service = await startService(t, {});
  service.store({ hosts: { [service.url]: { ...ENDED, expiresAtMs: Date.now() + 3_600_000 } } });
  const argv = ['user', 'list', '--service', service.url];
  for (const token of [{}, { TRIVET_TOKEN: 'a-token' }])
    assert.match((await service.run(argv, '', { TRIVET_URL: 'http://trivet:8080', ...token })).stderr, /^Cannot reach/);
});

test('a login is refreshed and revoked where the metadata of the service says', async (t) => {
  const service = await startService(t, {
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

test('trivet login goes on asking while the service cannot answer, less often (RFC 8628 §3.5)', async (t) => {
  const faults: Answer[] = [
    answerStarting,
    (response) => response.destroy(),
    (response) => sendJson(response, { error: 'authorization_pending' }, 400),
  ];
  const service = await startService(t, {
    '/oauth/token': (response, url) => (faults.shift() ?? ((last) => sendJson(last, TOKENS)))(response, url),
    '/api/v5/user': (response) => sendJson(response, { login: 'ada' }),
  });
  const { code, stdout, stderr } = await service.run(['login', service.url]);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /cannot answer now \(503\): try again later\nThe next attempt is in 1 s\n/);
  assert.match(stderr, /Cannot reach http:\S+ .*\nThe next attempt is in 2 s\n/);
  assert.equal(stdout, `Signed in to ${service.url} as ada (admin)\n`);
});

test('trivet login gives up at a service that cannot answer until the code ends', async (t) => {
  const service = await startService(t, {
    '/device': (response) => sendJson(response, { device_code: 'd', user_code: 'ABCD', interval: 0, expires_in: 0 }),
    '/oauth/token': answerStarting,
  });
  const { code, stderr } = await service.run(['login', service.url]);
  assert.equal(code, 1);
  assert.match(stderr, /cannot answer now \(503\)/);
});

const starting: [what: string, path: string, argv: string[]][] = [
  ['trivet login', '/.well-known/oauth-authorization-server', ['login']],
  ['trivet login', '/device', ['login']],
  ['trivet login --with-token', '/api/v5/user', ['login', '--with-token']],
  ['a command whose login ends', '/oauth/token', ['user', 'list', '--service']],
];
for (const [what, path, argv] of starting)
  test(`${what} says that ${path} cannot answer now, not that it is another service or the login has ended`, async (t) => {
    const service = await startService(t, { [path]: answerStarting });
    service.store({ hosts: { [service.url]: ENDED } });
    const { code, stderr } = await service.run([...argv, service.url], 'a-token');
    assert.equal(code, 1);
    assert.match(stderr, /^http:\S+ cannot answer now \(503\): try again later$/m);
    assert.deepEqual(service.readHosts()[service.url], ENDED, 'the login of before');
  });

test('a command says that its login has ended only when the service refuses the refresh token', async (t) => {
  const answers: [error: string, status: number][] = [
    ['temporarily_unavailable', 503],
    ['slow_down', 429],
    ['invalid_grant', 400],
  ];
  const service = await startService(t, {
    '/oauth/token': (response) => {
      const [error, status] = answers.shift() ?? ['none', 400];
      sendJson(response, { error }, status);
    },
  });
  service.store({ hosts: { [service.url]: ENDED } });
  const call = async () => (await service.run(['user', 'list', '--service', service.url])).stderr;
  assert.match(await call(), /cannot answer now \(503\)/);
  assert.match(await call(), /cannot answer now \(429\)/);
  assert.match(await call(), /The login at http:\S+ has ended: invalid_grant/);
});

test('trivet logout forgets a login after the service has revoked its token', async (t) => {
  const stored: boolean[] = [];
  const service = await startService(t, {
    '/oauth/revoke': (response, url) => {
      stored.push(url in service.readHosts());
      response.end();
    },
  });
  service.store({ hosts: { [service.url]: ENDED } });
  const { code, stdout } = await service.run(['logout', service.url, '--json']);
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(stdout), { url: service.url, revoked: true });
  assert.deepEqual(stored, [true]);
  assert.deepEqual(service.readHosts(), {});
});

test('trivet logout forgets a login that the service cannot revoke, and says where to revoke it', async (t) => {
  const service = await startService(t, { '/oauth/revoke': answerStarting });
  service.store({ hosts: { [service.url]: ENDED } });
  const { code, stderr } = await service.run(['logout', service.url]);
  assert.equal(code, 0);
  assert.match(stderr, /could not revoke the token, .* on the page Authorized applications/);
  assert.deepEqual(service.readHosts(), {});
});
