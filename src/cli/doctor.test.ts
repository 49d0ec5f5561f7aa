import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createCertificate } from '../../test/support/basics/certificate.ts';
import { findFreePort } from '../../test/support/basics/free-port.ts';
import { examineInstallation } from '../../test/support/programs/examine-installation.ts';
import { runTrivet } from '../../test/support/programs/run-trivet.ts';
import { startProgram } from '../../test/support/programs/start-program.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-doctor-'));
after(() => rmSync(folder, { recursive: true }));

const examine = (env: Readonly<Record<string, string>>, dataDir = join(folder, 'data')) =>
  examineInstallation(env, dataDir);

test('a healthy store passes, and what is missing is named with what to do', async () => {
  const before = await examine({}, join(folder, 'none'));
  assert.equal(before.code, 0);
  assert.match(before.find('store')?.advice ?? '', /trivet serve/);
  const env = { TRIVET_DATA_DIR: join(folder, 'data') };
  const made = await runTrivet(['user', 'create', '--login', 'ada', '--name', 'Ada', '--admin'], { env });
  assert.match(made.stderr, /ada cannot sign in yet: trivet user password-link ada/);
  assert.match((await examine({})).find('accounts')?.found ?? '', /^no administrator can sign in$/);
  await runTrivet(['user', 'password', 'ada', '--password-stdin'], { env, input: 'correct horse battery\n' });
  const healthy = await examine({});
  assert.equal(healthy.code, 0, healthy.stderr);
  for (const name of [
    'settings',
    'store',
    'keys',
    'clock',
    'accounts',
    'HTTP port',
    'gRPC port',
    'disk',
    'callers',
    'addresses',
  ])
    assert.equal(healthy.find(name)?.state, 'ok', name);
});

test('each fault is found', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const ports = await examine({ HTTP_PORT: String(port), HOST: '127.0.0.1' });
  taken.close();
  assert.deepEqual([ports.code, ports.find('HTTP port')?.state], [1, 'fail']);

  const settings = await examine({ HTTP_PORT: 'many', PREDICTION_AUHT: 'on' });
  assert.deepEqual([settings.code, settings.find('settings')?.state], [1, 'fail']);
  assert.match(settings.stdout, /PREDICTION_AUHT is no setting/);

  const keys = await examine({ SECRET_KEYS: Buffer.alloc(32, 9).toString('base64') });
  assert.deepEqual([keys.code, keys.find('keys')?.state], [1, 'fail']);

  const database = await examine({ DATABASE_URL: `postgres://u:secret@127.0.0.1:${await findFreePort()}/none` });
  assert.deepEqual([database.code, database.find('store')?.state], [1, 'fail']);
  assert.doesNotMatch(database.stdout, /secret/);

  const mail = await examine({ SMTP_HOST: '127.0.0.1', SMTP_PORT: '1', SMTP_SECURITY: 'none', MAIL_FROM: 't@a.b' });
  assert.deepEqual([mail.code, mail.find('mail')?.state], [1, 'fail']);
  assert.match(mail.find('mail')?.found ?? '', /ECONNREFUSED/);

  const open = await examine({ HOST: '0.0.0.0', PREDICTION_AUTH: 'off', AUTH_URL: 'https://id.example.org' });
  assert.deepEqual([open.find('callers')?.state, open.find('trusted proxies')?.state], ['warn', 'warn']);
  assert.match(open.find('addresses')?.found ?? '', /BASE_URL is not set: links .* lead to port \d+ of this machine/);
  const named = { BASE_URL: 'https://api.example.org', AUTH_URL: 'https://id.example.org', HOST: '0.0.0.0' };
  assert.equal((await examine(named)).find('addresses')?.state, 'ok');

  const plain = await examine({ AUTH_URL: 'http://id.example.org' });
  assert.match(plain.find('trusted proxies')?.found ?? '', /travel without encryption/);
});

test('a port of another program fails, and one of a running service passes', async (t) => {
  const stranger = createHttpServer((_, response) => {
    response.setHeader('Content-Type', 'application/json').end('{"status":"ok"}');
  }).listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  t.after(() => stranger.close());
  const strange = String((stranger.address() as AddressInfo).port);
  await using program = await startProgram({ PREDICTION_LEARNING: 'off' });
  const here = { HTTP_PORT: new URL(program.httpUrl).port, GRPC_PORT: program.grpcAddress.split(':').at(-1) ?? '' };
  const cases: [HTTP_PORT: string, GRPC_PORT: string, states: string[]][] = [
    [here.HTTP_PORT, here.GRPC_PORT, ['ok', 'ok']],
    [here.HTTP_PORT, strange, ['ok', 'fail']],
    [strange, here.GRPC_PORT, ['fail', 'ok']],
    [here.GRPC_PORT, here.HTTP_PORT, ['fail', 'fail']],
  ];
  for (const [HTTP_PORT, GRPC_PORT, states] of cases) {
    const { find } = await examine({ HTTP_PORT, GRPC_PORT }, program.dataDir);
    const found = ['HTTP port', 'gRPC port'].map(find);
    assert.deepEqual(
      found.map((check) => check?.state),
      states,
      found.map((check) => check?.found).join(),
    );
  }
});

test('the port of llm-d is recognized as that of a running service, and of another program', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.after(() => taken.close());
  const llmD = { LLM_D_PORT: String(await findFreePort()), LLM_D_MODEL: 'm' };
  assert.equal((await examine(llmD)).find('llm-d port')?.state, 'ok');
  const strange = { ...llmD, LLM_D_PORT: String((taken.address() as AddressInfo).port) };
  const foreign = (await examine({ ...strange, HOST: '127.0.0.1' })).find('llm-d port');
  assert.deepEqual([foreign?.state, foreign?.advice], ['fail', 'Stop it, or set LLM_D_PORT']);
  await assert.rejects(startProgram({ PREDICTION_LEARNING: 'off', ...strange }), /set LLM_D_PORT to another one/);
  await using program = await startProgram({ PREDICTION_LEARNING: 'off', ...llmD });
  const ports = { HTTP_PORT: new URL(program.httpUrl).port, GRPC_PORT: program.grpcAddress.split(':').at(-1) ?? '' };
  assert.equal((await examine({ ...ports, ...llmD }, program.dataDir)).find('llm-d port')?.state, 'ok');
});

test('a gRPC port with TLS is recognized as that of a running service', async () => {
  const { certFile, keyFile } = createCertificate();
  const tls = { GRPC_TLS_CERT_FILE: certFile, GRPC_TLS_KEY_FILE: keyFile };
  await using program = await startProgram({ PREDICTION_LEARNING: 'off', ...tls });
  const ports = { HTTP_PORT: new URL(program.httpUrl).port, GRPC_PORT: program.grpcAddress.split(':').at(-1) ?? '' };
  assert.equal((await examine({ ...ports, ...tls }, program.dataDir)).find('gRPC port')?.state, 'ok');
});

test('an address that is not of this machine is no port in use', async () => {
  const check = (await examine({ HOST: '192.0.2.1' })).find('HTTP port');
  assert.match(check?.found ?? '', /cannot be opened: .*EADDRNOTAVAIL/);
  assert.match(check?.advice ?? '', /^Set HOST to an address of this machine/);
});

test('a repository of notices that is absent, or that others than administrators own, is seen', async () => {
  const env = { TRIVET_DATA_DIR: join(folder, 'notices') };
  const trivet = async (line: string) => {
    const { code, stderr } = await runTrivet(line.split(' '), { env });
    assert.equal(code, 0, stderr);
  };
  const find = async (repository?: string) => {
    const notices = repository === undefined ? {} : { NOTICE_REPOSITORY: repository };
    return (await examine(notices, env.TRIVET_DATA_DIR)).find('notices');
  };
  await trivet('user create --login ada --name Ada --admin');
  await trivet('user create --login grace --name Grace');
  assert.equal((await find())?.state, 'ok');
  for (const absent of ['ops/notices', 'ada/notices']) {
    const check = await find(absent);
    assert.deepEqual([check?.state, check?.advice?.includes(`trivet repo create ${absent}`)], ['warn', true]);
  }
  await trivet('repo create ada/notices --private');
  await trivet('repo create grace/notices --private');
  assert.equal((await find('Ada/Notices'))?.state, 'ok');
  assert.match((await find('grace/notices'))?.found ?? '', /not all its owners are administrators/);
  await trivet('org create ops --owner grace');
  await trivet('repo create ops/notices --private');
  assert.equal((await find('ops/notices'))?.state, 'warn');
  await trivet('org add ops ada --role owner');
  assert.equal((await find('ops/notices'))?.state, 'warn', 'the other owner is no administrator');
  await trivet('org remove ops grace');
  assert.equal((await find('ops/notices'))?.state, 'ok');
});

test('notices by mail that no administrator gets are seen', async () => {
  const env = { TRIVET_DATA_DIR: join(folder, 'mailed') };
  const mail = { SMTP_HOST: '127.0.0.1', SMTP_PORT: '1', SMTP_SECURITY: 'none', MAIL_FROM: 't@example.org' };
  await runTrivet(['user', 'create', '--login', 'ada', '--name', 'Ada', '--admin'], { env });
  const find = async (settings = {}) => (await examine(settings, env.TRIVET_DATA_DIR)).find('notices');
  assert.match((await find())?.found ?? '', /^are off: SMTP_HOST and NOTICE_REPOSITORY are not set$/);
  const check = await find(mail);
  assert.deepEqual([check?.state, check?.advice?.includes('trivet user email LOGIN ADDRESS')], ['warn', true]);
  await runTrivet(['user', 'email', 'ada', 'ada@example.org'], { env });
  assert.match((await find(mail))?.found ?? '', /^go by mail only/);
});

test('the end of a certificate is seen', async () => {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const make = (days: string) =>
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=x'].concat([
        '-days',
        days,
        '-keyout',
        key,
        '-out',
        cert,
      ]),
      { stdio: 'ignore' },
    );
  const env = { GRPC_TLS_CERT_FILE: cert, GRPC_TLS_KEY_FILE: key };
  make('100');
  assert.equal((await examine(env)).find('TLS certificate')?.state, 'ok');
  make('3');
  assert.equal((await examine(env)).find('TLS certificate')?.state, 'warn');
  const unreadable = await examine({ ...env, GRPC_TLS_CERT_FILE: key });
  assert.equal(unreadable.find('TLS certificate')?.state, 'fail');
});

test('a key that is not the certificate’s and a file without an authority are seen', async () => {
  const { certFile, keyFile } = createCertificate();
  const tls = { GRPC_TLS_CERT_FILE: certFile, GRPC_TLS_KEY_FILE: keyFile };
  const find = async (env: Readonly<Record<string, string>>) => (await examine(env)).find('TLS certificate');
  assert.equal((await find({ ...tls, GRPC_TLS_CLIENT_CA_FILE: certFile }))?.state, 'ok');
  const otherKey = await find({ ...tls, GRPC_TLS_KEY_FILE: createCertificate().keyFile });
  assert.deepEqual([otherKey?.state, /key/.test(otherKey?.found ?? '')], ['fail', true]);
  const noAuthority = await find({ ...tls, GRPC_TLS_CLIENT_CA_FILE: keyFile });
  assert.deepEqual([noAuthority?.state, /holds no certificate/.test(noAuthority?.found ?? '')], ['fail', true]);
});

test('settings are shown with where they come from, secrets are masked', async () => {
  const env = { TRIVET_DATA_DIR: folder, DATABASE_URL: 'postgres://u:sesame@db/x', HTTP_PORT: '8090' };
  const plain = await runTrivet(['config'], { env });
  assert.match(plain.stdout, /^HTTP_PORT +8090 +environment$/m);
  assert.match(plain.stdout, /^DATABASE_URL +\*+ +environment$/m);
  const json = await runTrivet(['config', '--json'], { env });
  const rows = json.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const host = rows.find(({ name }: { name: string }) => name === 'HOST');
  assert.deepEqual(host, { name: 'HOST', setting: 'server.host', value: '127.0.0.1', source: 'default' });
  assert.doesNotMatch(plain.stdout + json.stdout, /sesame/);
  const wrong = await runTrivet(['config'], { env: { ...env, HTTP_PORT: 'many' } });
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /HTTP_PORT: must be a whole number/);
});
