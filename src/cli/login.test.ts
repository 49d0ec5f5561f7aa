/** `trivet login` and `trivet logout` beside other commands, and with a service that cannot answer for a while. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  type Answer,
  answerStarting,
  ENDED,
  sendJson,
  startLoginService,
  TOKENS,
} from '../../test/support/programs/login-service.ts';

const LOCKS = new URL('../database/startup/file-lock.ts', import.meta.url).href;
const HOLD_LOCK = `import { tryLockFile } from '${LOCKS}'; globalThis.lock = tryLockFile(process.argv[1]);
  process.stdout.write('locked'); setInterval(() => {}, 1000);`;

test('trivet login keeps the token of a confirmed code also when the name of its person cannot be read', async (t) => {
  const service = await startLoginService(t, { '/oauth/token': (response) => sendJson(response, TOKENS) });
  const { code, stderr } = await service.run(['login', service.url]);
  assert.equal(code, 1);
  assert.match(stderr, /confirm the code ABCD\nCannot reach http:/);
  assert.equal(service.readHosts()[service.url].token, 'fresh');
});

test('trivet login keeps what other commands stored while its person confirmed the code', async (t) => {
  const service = await startLoginService(t, {
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

test('logins that are stored together are all kept, also after a command that was killed while it stored one', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const answers = names.map((name): [string, Answer] => [
    `/${name}/api/v5/user`,
    (response) => sendJson(response, { login: name }),
  ]);
  const service = await startLoginService(t, Object.fromEntries(answers));
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
      writeFileSync(join(folder, 'hosts.json'), '{"hosts": {"https://a.example": {"token": secret}}}');
      return {};
    },
    /Cannot read the logins in ".*": it is not valid JSON\n$/,
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
    const service = await startLoginService(t, { '/oauth/token': (response) => sendJson(response, TOKENS) });
    const { code, stderr } = await service.run(['login', service.url], '', spoil(service.configFolder));
    assert.notEqual(code, 0);
    assert.match(stderr, message);
    assert.deepEqual(service.paths, []);
  });

test('the token of the environment goes to the service that the environment names, and to no other', async (t) => {
  const service = await startLoginService(t, {});
  const run = async (TRIVET_URL: string) =>
    (await service.run(['user', 'list', '--service', service.url], '', { TRIVET_TOKEN: 'a-token', TRIVET_URL })).stderr;
  for (const other of ['https://other.example', 'http://trivet:8080', 'not an address'])
    assert.ok((await run(other)).includes(`is for the service of TRIVET_URL (${other}), not for this one; sign in`));
  assert.deepEqual(service.paths, []);
  for (const named of ['', `${service.url}/`]) assert.match(await run(named), /^Cannot reach http:/);
});

test('an address in the environment that a command does not use cannot end it', async (t) => {
  const service = await startLoginService(t, {});
  service.store({ hosts: { [service.url]: { ...ENDED, expiresAtMs: Date.now() + 3_600_000 } } });
  const argv = ['user', 'list', '--service', service.url];
  for (const token of [{}, { TRIVET_TOKEN: 'a-token' }])
    assert.match((await service.run(argv, '', { TRIVET_URL: 'http://trivet:8080', ...token })).stderr, /^Cannot reach/);
});

test('trivet login goes on asking while the service cannot answer, less often (RFC 8628 §3.5)', async (t) => {
  const faults: Answer[] = [
    answerStarting,
    (response) => response.destroy(),
    (response) => sendJson(response, { error: 'authorization_pending' }, 400),
  ];
  const service = await startLoginService(t, {
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
  const service = await startLoginService(t, {
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
    const service = await startLoginService(t, { [path]: answerStarting });
    service.store({ hosts: { [service.url]: ENDED } });
    const { code, stderr } = await service.run([...argv, service.url], 'a-token');
    assert.equal(code, 1);
    assert.match(stderr, /^http:\S+ cannot answer now \(503\): try again later$/m);
    assert.deepEqual(service.readHosts()[service.url], ENDED, 'the login of before');
  });

test('trivet logout forgets a login after the service has revoked its token', async (t) => {
  const stored: boolean[] = [];
  const service = await startLoginService(t, {
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
  const service = await startLoginService(t, { '/oauth/revoke': answerStarting });
  service.store({ hosts: { [service.url]: ENDED } });
  const { code, stderr } = await service.run(['logout', service.url]);
  assert.equal(code, 0);
  assert.match(stderr, /could not revoke the token, .* on the page Authorized applications/);
  assert.deepEqual(service.readHosts(), {});
});
