import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runTrivet } from '../../test/support/programs/run-trivet.ts';
import { readEnvironment } from '../config/config.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'trivet-mistakes-'));
const env = { TRIVET_DATA_DIR: dataDir };
const brokenEvent = join(dataDir, 'event.json');

/** Answers, but is no Trivet service. */
const other = createHttpServer((_, response) => response.end('<html>'));

/** Ends the connection in the middle of an answer. */
const breaking = createHttpServer((_, response) => {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 100 });
  response.write('{', () => response.destroy());
});
const portOf = (server: HttpServer) => String((server.address() as { port: number }).port);

before(async () => {
  await once(breaking.listen(0, '127.0.0.1'), 'listening');
  await once(other.listen(0, '127.0.0.1'), 'listening');
  writeFileSync(brokenEvent, '{');
  assert.equal((await runTrivet(['user', 'create', '--login', 'ada', '--name', 'Ada'], { env })).code, 0);
  assert.equal((await runTrivet(['repo', 'create', 'ada/doors'], { env })).code, 0);
});
after(() => {
  other.close();
  breaking.close();
  rmSync(dataDir, { recursive: true });
});

const mistakes: [argv: string, code: number, message: RegExp][] = [
  ['event send ada/doors --sample --count x', 2, /whole number from 1 to 1000000/],
  ['hook deliveries ada/doors 1 --limit x', 2, /whole number from 1 to 10000/],
  ['listen --status 999', 2, /whole number from 200 to 599/],
  ['listen --count 1.5', 2, /whole number from 1 /],
  ['git-hook send --hours x', 2, /it must be a number of h, or a duration such as/],
  ['git-hook send --for 9000h', 2, /; 0 to 8760 h/],
  ['listen --delay 2h', 2, /it must be a number of ms, or a duration such as .*; 0 to 3600000 ms/],
  ['audit --since soon', 2, /it must be how long ago, as a duration such as/],
  ['model accuracy m --since soon', 2, /it must be how long ago, as a duration such as/],
  [
    `event send ada/doors --file ${brokenEvent}`,
    2,
    /^Cannot publish the event: ".*event.json" must hold one JSON object\n$/,
  ],
  ['event send ada/doors --file /no/such/file', 2, /^Cannot read "\/no\/such\/file": ENOENT: no such file/],
  ['git-hook send --token-file /no/such/file', 2, /^Cannot read "\/no\/such\/file": ENOENT: no such file/],
  [
    'user list --service https://localhost:PORT --token x',
    1,
    /^Cannot reach .*: it does not speak https at this port\n$/,
  ],
  ['user list --service http://localhost:PORT --token x', 1, /answered something else than a Trivet service: check/],
  ['login http://localhost:PORT', 1, /answered something else than a Trivet service: check the address\n$/],
  [
    'user list --service http://localhost:BREAKING --token x',
    1,
    /^Cannot reach http:\/\/localhost:\d+: (other side closed|terminated|aborted)\n$/,
  ],
  [
    'login http://localhost:BREAKING',
    1,
    /^Cannot reach http:\/\/localhost:\d+: (other side closed|terminated|aborted)\n$/,
  ],
  ['help nosuch', 2, /unknown command 'nosuch'/],
  ['nosuch --help', 2, /unknown command 'nosuch'/],
  ['help hook nosuch', 2, /unknown command 'nosuch'/],
  ['model evaluate --input x --protocol stale-metrics --age 0.2ms', 2, /--age .*; whole milliseconds, up to 7d/],
  ['token list nemo', 1, /^There is no person with the login "nemo"\n$/],
  ['token create --user nemo --name x --scope predict', 1, /^There is no person with the login "nemo"\n$/],
  ['repo list missing', 1, /^Cannot list the repositories: there is no person or organization "missing"\n$/],
];
for (const [argv, code, message] of mistakes)
  test(`trivet ${argv.replace(dataDir, '')} says what is wrong`, async () => {
    const ended = await runTrivet(
      argv.replace('PORT', portOf(other)).replace('BREAKING', portOf(breaking)).split(' '),
      { env },
    );
    assert.equal(ended.code, code, ended.stderr);
    assert.match(ended.stderr, message);
  });

const SECRET = 'hunter2';
const malformed: [name: string, what: string, content: string, message: RegExp][] = [
  [
    'trivet.toml',
    'a password without quotes',
    `[store]\ndatabase_url = ${SECRET}\n`,
    /trivet\.toml": Invalid TOML document: invalid value \(line 2 column \d+\)/,
  ],
  [
    'trivet.toml',
    'a mistake below a password',
    `[mail]\npassword = "${SECRET}"\nport = \n`,
    /trivet\.toml": Invalid TOML document: .* \(line 3 column \d+\)/,
  ],
  [
    'trivet.json',
    'a password without quotes',
    `{"mail": {"password": ${SECRET}}}`,
    /trivet\.json": it is not valid JSON/,
  ],
  [
    'trivet.json',
    'a comma missing behind a password',
    `{"mail": {"password": "${SECRET}" "port": 25}}`,
    /trivet\.json": Expected ',' .* in JSON at position 32 \(line 1 column 33\)/,
  ],
];
for (const [name, what, content, message] of malformed)
  test(`no command shows the text of ${name} with ${what}, only its place`, async () => {
    const folder = mkdtempSync(join(dataDir, 'malformed-'));
    const file = join(folder, name);
    writeFileSync(file, content);
    for (const argv of [['serve'], ['config'], ['doctor', '--json'], ['doctor']]) {
      const { code, stdout, stderr } = await runTrivet(argv, { env: { ...env, TRIVET_CONFIG: file } });
      assert.notEqual(code, 0, argv.join(' '));
      const shown = (stdout + stderr).replaceAll('\\"', '"');
      assert.match(shown, message);
      assert.doesNotMatch(shown, /hunter2/, argv.join(' '));
    }
  });

test('a command ends quietly when its output is closed', () => {
  const program = fileURLToPath(new URL('trivet.ts', import.meta.url));
  const argv = [...process.execArgv, program, 'repo', 'list', 'ada', '--json'];
  const line = [process.execPath, ...argv].map((word) => `'${word}'`).join(' ');
  const ended = spawnSync('sh', ['-c', `${line} | true`], { encoding: 'utf8', env: { ...readEnvironment(), ...env } });
  assert.deepEqual([ended.status, ended.stderr], [0, '']);
});

test('trivet listen names the taken port and the option that chooses another', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const ended = await runTrivet(['listen', '--port', String(port)], { env }).finally(() => server.close());
  assert.equal(ended.code, 1);
  const reason = 'the port is taken; set --port to another one, or to 0 for any';
  assert.equal(ended.stderr, `Cannot listen on 127.0.0.1:${port}: ${reason}\n`);
});

test('a group of commands alone shows its help, as help does', async () => {
  for (const [argv, usage] of [
    [[], 'trivet [options] [command]'],
    [['hook'], 'trivet hook [options] [command]'],
    [['hook', 'all'], 'trivet hook all [options] [command]'],
    [['help', 'hook', 'create'], 'trivet hook create [options] <owner/name>'],
  ] as const) {
    const { code, stdout, stderr } = await runTrivet([...argv], { env });
    assert.deepEqual([code, stderr, stdout.split('\n')[0]], [0, '', `Usage: ${usage}`]);
  }
  assert.match((await runTrivet(['-v'], { env })).stdout, /^\d+\.\d+\.\d+\n$/);
});

test('a list without entries leaves standard output empty and is named on standard error', async () => {
  for (const argv of [
    ['hook', 'list', 'ada/doors'],
    ['org', 'list'],
    ['token', 'list', 'ada'],
    ['audit', '--since', '0s'],
  ]) {
    const { code, stdout, stderr } = await runTrivet(argv, { env });
    assert.deepEqual([code, stdout], [0, ''], argv.join(' '));
    assert.match(stderr, /^No \w+( of ada)?\n$/);
  }
});
