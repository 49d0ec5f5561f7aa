import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runTrivet } from '../../test/support/run-trivet.ts';
import { readEnvironment } from '../config/config.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'trivet-mistakes-'));
const env = { TRIVET_DATA_DIR: dataDir };
const brokenEvent = join(dataDir, 'event.json');

before(async () => {
  writeFileSync(brokenEvent, '{');
  assert.equal((await runTrivet(['user', 'create', '--login', 'ada', '--name', 'Ada'], { env })).code, 0);
  assert.equal((await runTrivet(['repo', 'create', 'ada/doors'], { env })).code, 0);
});
after(() => rmSync(dataDir, { recursive: true }));

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
    /^Cannot announce the event: ".*event.json" must hold one JSON object\n$/,
  ],
  ['event send ada/doors --file /no/such/file', 1, /^ENOENT: no such file or directory, open '\/no\/such\/file'\n$/],
  ['repo list missing', 1, /^Cannot list the repositories: there is no person or organization "missing"\n$/],
];
for (const [argv, code, message] of mistakes)
  test(`trivet ${argv.replace(dataDir, '')} says what is wrong`, async () => {
    const ended = await runTrivet(argv.split(' '), { env });
    assert.equal(ended.code, code, ended.stderr);
    assert.match(ended.stderr, message);
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
