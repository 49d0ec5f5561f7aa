import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { launchTrivet } from '../support/programs/launched-trivet.ts';
import { runTrivet, type TrivetRun } from '../support/programs/run-trivet.ts';
import { startProgram } from '../support/programs/start-program.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-demo-test-'));
after(() => rmSync(folder, { recursive: true }));

async function run(argv: readonly string[], env: Readonly<Record<string, string>>, input = ''): Promise<TrivetRun> {
  const ended = await runTrivet(argv, { env, input });
  assert.equal(ended.code, 0, ended.stderr);
  return ended;
}

test('the demo shows a prediction and a signed delivery, and no link that is dead at its end', async () => {
  const { code, stdout, stderr } = await runTrivet(['demo', '--exit']);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /demo-8b@1/);
  assert.match(stdout, /signature/i);
  assert.doesNotMatch(stdout, /\/setup/);
});

test('the demo leaves the service of TRIVET_URL as it is', async () => {
  await using service = await startProgram();
  const own = { TRIVET_DATA_DIR: service.dataDir };
  await run(
    ['user', 'create', '--login', 'root', '--name', 'Root', '--admin', '--password-stdin'],
    own,
    'a long enough password',
  );
  const { stdout } = await run(['token', 'create', '--user', 'root', '--name', 'all', '--scope', 'admin'], own);
  await using demo = launchTrivet(['demo'], { env: { TRIVET_URL: service.httpUrl, TRIVET_TOKEN: stdout.trim() } });
  // The commands that it proposes go to the store of the demo too.
  await demo.waitForOutput(/unset .*\bTRIVET_URL .*\n +export .*TRIVET_DATA_DIR=/);
  demo.signalGroup('SIGINT');
  assert.equal(await demo.exited, 0, demo.log());
  assert.doesNotMatch((await run(['user', 'list'], own)).stdout, /ada/);
});

test('the commands that the demo proposes use its store, whatever keys and configuration file are here', async () => {
  const here = join(folder, 'here');
  mkdirSync(here);
  const mail = '[mail]\nhost = "mail.example"\nfrom = "trivet@example.org"\nuser = "trivet"\n';
  writeFileSync(join(here, 'trivet.toml'), `[store]\ndatabase_url = "postgres://127.0.0.1:1/none"\n${mail}`);
  const env = { SECRET_KEYS: randomBytes(32).toString('base64'), SMTP_PASSWORD: 'x' };
  await using demo = launchTrivet(['demo'], { env, folder: here });
  const commands = await demo.waitForOutput(/ list\n((?: +(?:unset|export) .*\n)+)/);
  const script = `${commands}\n"$0" "$1" model list\n"$0" "$1" hook all list`;
  const bin = resolve('bin/trivet.js');
  const { stdout } = await promisify(execFile)('sh', ['-ec', script, process.execPath, bin], {
    cwd: here,
    env: { ...process.env, ...env },
  });
  assert.match(stdout, /demo-8b/);
  demo.signalGroup('SIGINT');
  assert.equal(await demo.exited, 0, demo.log());
});

test('the demo uses neither the database of TRIVET_CONFIG nor the git repository of GIT_DIR', async () => {
  const [dataDir, repository, config] = ['data', 'other.git', 'trivet.toml'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(config, `[store]\ndata_dir = "${dataDir}"\ndatabase_url = "postgres://127.0.0.1:1/none"\n`);
  execFileSync('git', ['init', '--quiet', '--bare', repository]);
  await run(['demo', '--exit'], { TRIVET_CONFIG: config, GIT_DIR: repository });
  assert.deepEqual(readdirSync(folder).sort(), ['here', 'other.git', 'trivet.toml']);
  assert.deepEqual(readdirSync(join(repository, 'refs', 'heads')), []);
});
