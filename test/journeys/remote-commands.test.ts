/** The command line against a running service, from a machine without its store: login, the same output, refusals. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { findFreePort } from '../support/basics/free-port.ts';
import { createFormClient, readHidden } from '../support/network/form-client.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';

const PASSWORD = 'correct horse battery';
const SHIFT = new URL('../support/basics/shifted-clock.ts', import.meta.url).href;
const folder = mkdtempSync(join(tmpdir(), 'trivet-remote-'));
after(() => rmSync(folder, { recursive: true }));

/** The first test asks for nothing that the second one looks for. */
let program: Program;
before(async () => {
  program = await startService();
});
after(() => program[Symbol.asyncDispose]());

/** A person at another machine: no store, and a configuration folder of the own. */
function createClient(name: string) {
  const env = { XDG_CONFIG_HOME: join(folder, name), TRIVET_DATA_DIR: join(folder, 'no-store') };
  return {
    env,
    hosts: join(folder, name, 'trivet', 'hosts.json'),
    run: (argv: readonly string[], input = '') => runTrivet(argv, { env, input }),
    async trivet(...argv: string[]): Promise<string> {
      const { code, stdout, stderr } = await runTrivet(argv, { env });
      assert.equal(code, 0, stderr);
      return stdout;
    },
  };
}

async function startService(): Promise<Program> {
  const program = await startProgram({ PREDICTION_LEARNING: 'off' });
  const env = { TRIVET_DATA_DIR: program.dataDir };
  const trivet = async (argv: string[], input = '') => {
    const run = await runTrivet(argv, { env, input });
    assert.equal(run.code, 0, run.stderr);
  };
  await trivet(['user', 'create', '--login', 'root', '--name', 'Root', '--admin', '--password-stdin'], PASSWORD);
  const trace = join(program.dataDir, 'trace.jsonl');
  await trivet(['simulate', '--servers', 'medium:1', '--duration', '60', '--rate', '5', '--output', trace]);
  for (const promoted of ['true', 'false'])
    await trivet(['model', 'train', '--model', 'llama-8b', '--input', trace, '--any-model', '--promote', promoted]);
  await trivet(['repo', 'create', 'root/doors']);
  await trivet(['hook', 'create', 'root/doors', '--url', 'https://1.1.1.1/']);
  return program;
}

/** Rows of two target models in seconds, with a field that is misspelt. */
function writeDoubtful(): string {
  const path = join(folder, 'doubtful.jsonl');
  const rows = Array.from({ length: 40 }, (_, i) => ({
    target_model: `m${i % 2}`,
    input_token_length: 100 + i,
    kv_cache: 0.5,
    ttft_millis: 0.1 + i / 1000,
  }));
  writeFileSync(path, rows.map((row) => JSON.stringify(row)).join('\n'));
  return path;
}

/** Starts `trivet login`, confirms its code in a browser as this person, and resolves with what it printed. */
async function signIn(env: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, ['src/cli/trivet.ts', 'login', program.httpUrl], {
    env: { ...process.env, ...env },
  });
  const { promise: code, resolve: found } = Promise.withResolvers<string>();
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
    const shown = /confirm the code (\S+)/.exec(stderr)?.[1];
    if (shown !== undefined) found(shown);
  });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  await confirm(await code);
  assert.equal(await ended, 0, stderr);
  return stdout;
}

async function confirm(userCode: string): Promise<void> {
  const { httpUrl } = program;
  const browser = createFormClient(httpUrl);
  await browser.submit('/sign-in', '/sign-in', { login: 'root', password: PASSWORD });
  const accepted = await browser.submit(`/device?user_code=${userCode}`, '/device', { user_code: userCode });
  const page = await browser.get(accepted.location ?? '');
  const hidden = readHidden(page.body, '/device');
  const boxes = ['all_user', 'admin'].map((name): [string, string] => ['scope', name]);
  const form = new URLSearchParams([...Object.entries(hidden), ...boxes, ['narrow', '1'], ['decision', 'allow']]);
  const cookie = [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ');
  const init = { method: 'POST', body: form, headers: { cookie, origin: httpUrl }, redirect: 'manual' } as const;
  const answer = await fetch(`${httpUrl}/device`, init);
  assert.match(answer.headers.get('location') ?? '', /done=approved/);
}

test('a token from standard input does what its scopes allow, and a refusal names the missing one', async () => {
  const client = createClient('token');
  const here = { TRIVET_DATA_DIR: program.dataDir };
  const make = ['token', 'create', '--user', 'root', '--name', 'ci', '--scope', 'models:read'];
  const { stdout: token } = await runTrivet(make, { env: here });
  const signedIn = await client.run(['login', program.httpUrl, '--with-token', '--json'], token);
  assert.deepEqual(JSON.parse(signedIn.stdout), { url: program.httpUrl, user: null, scope: null });
  assert.match(await client.trivet('model', 'list'), /llama-8b@2/);
  const refused = await client.run(['model', 'promote', 'llama-8b@2']);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /needs the scope models:write of a person who administers the service/);
  assert.match(refused.stderr, /trivet login http:\S+ --scope models:write/);

  const closed = `http://127.0.0.1:${await findFreePort()}`;
  const mistakes: [argv: string, code: number, message: RegExp][] = [
    [`model list --url ${program.httpUrl} --token wrong`, 1, /refused the token.*Sign in with: trivet login/],
    ['model list --url http://trivet.example.org --token x', 2, /a token travels over https only/],
    [`model list --url ${closed} --token x`, 1, /Cannot reach http:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED/],
    ['model list --url https://unknown.example.org', 1, /No login for https:\/\/unknown\.example\.org/],
    ['model list --token x', 2, /without --service/],
    ['model list --url ftp://example.org --token x', 2, /must be the address of a service/],
    ['logout https://unknown.example.org', 1, /there is no login for https:\/\/unknown\.example\.org/],
  ];
  for (const [argv, code, message] of mistakes) {
    const run = await client.run(argv.split(' '));
    assert.match(run.stderr, message, argv);
    assert.equal(run.code, code, argv);
  }
  const wrong = await client.run(['login', program.httpUrl, '--with-token'], 'wrong');
  assert.match(wrong.stderr, /refused the token/);
});

test('a person signs in by the device flow and administers the service from another machine', async () => {
  const client = createClient('device');
  assert.equal(await signIn(client.env), `Signed in to ${program.httpUrl} as root (all_user admin)\n`);
  assert.equal(statSync(client.hosts).mode & 0o777, 0o600);

  const here = { TRIVET_DATA_DIR: program.dataDir };
  const same = [
    'model list',
    'model list --json',
    'model show llama-8b',
    'model show llama-8b@2 --json',
    'user list',
    'user list --json',
    'user show root --json',
    'org list --json',
    'hook all list',
    'hook all list --json',
    'audit --limit 3',
    'audit --json',
  ];
  for (const command of same) {
    const argv = command.split(' ');
    const [remote, local] = await Promise.all([client.run(argv), runTrivet(argv, { env: here })]);
    assert.equal(remote.stderr, `On ${program.httpUrl} (there is no store here)\n`);
    assert.equal(remote.stdout, local.stdout, command);
  }
  // The events of the last hour are those of the service's hour.
  const env = { ...client.env, NODE_OPTIONS: `--import ${SHIFT}`, TEST_CLOCK_AHEAD_MS: String(2 * 3_600_000) };
  const lastHour = await runTrivet(['audit', '--since', '1h', '--kind', 'device_approved', '--json'], { env });
  assert.match(lastHour.stdout, /"kind":"device_approved"/, lastHour.stderr);
  assert.equal(await client.trivet('model', 'promote', 'llama-8b@2'), 'llama-8b@2 is served now\n');
  assert.equal(
    await client.trivet('model', 'rollback', 'llama-8b'),
    'llama-8b@1 is served again, in place of llama-8b@2\n',
  );
  const file = join(folder, 'model.bin');
  await client.trivet('model', 'export', 'llama-8b', '--output', file);
  assert.equal(await client.trivet('model', 'import', file, '--model', 'copy'), 'copy@1 is served now\n');
  const trace = join(program.dataDir, 'trace.jsonl');
  const evaluate = ['model', 'evaluate', '--input', trace, '--protocol', 'time', '--json'];
  const evaluated = await client.trivet(...evaluate, '--url', program.httpUrl);
  assert.equal(evaluated, await client.trivet(...evaluate));
  const mended = join(folder, 'mended.jsonl');
  writeFileSync(mended, `${readFileSync(trace, 'utf8').trim()}\n{"ttft_millis": -4}\n`.repeat(2));
  const judged = await client.run([...evaluate.with(3, mended), '--url', program.httpUrl]);
  assert.match(judged.stderr, /Rows left out\n[\s\S]*2 +ttft_millis must be more than 0 [\s\S]*mended\.jsonl:\d+$/m);
  assert.match(judged.stderr, /^\d+ rows are copies of another one/m);
  assert.deepEqual(Object.keys(JSON.parse(judged.stdout)), Object.keys(JSON.parse(evaluated)));
  const doubtful = evaluate.with(3, writeDoubtful());
  const remarked = await client.run([...doubtful, '--url', program.httpUrl]);
  assert.match(remarked.stderr, /not used: kv_cache \(40 rows\)\nAre the times in seconds\?.*\nAll of 2 target models/);
  const atHome = { XDG_CONFIG_HOME: join(folder, 'signed-out'), TRIVET_DATA_DIR: join(folder, 'no-store') };
  assert.equal(remarked.stderr, (await runTrivet(doubtful, { env: atHome })).stderr);
  const created = await client.run(['user', 'create', '--login', 'ada', '--name', 'Ada', '--password-stdin'], PASSWORD);
  assert.match(created.stdout, /^Created ada/);
  assert.match(await client.trivet('audit', '--by', 'root', '--kind', 'model_promoted'), /model=llama-8b@2/);
  assert.equal(await client.trivet('hook', 'all', 'disable', '1'), 'Webhook 1 of root/doors is off\n');
  assert.match(await client.trivet('hook', 'all', 'list', '--state', 'off'), /root\/doors/);

  const { hosts } = JSON.parse(readFileSync(client.hosts, 'utf8'));
  const { token } = hosts[program.httpUrl];
  assert.equal(await client.trivet('logout'), `Signed out of ${program.httpUrl}\n`);
  assert.doesNotMatch(readFileSync(client.hosts, 'utf8'), /tvt_/);
  const headers = { authorization: `Bearer ${token}` };
  assert.equal((await fetch(`${program.httpUrl}/api/v5/user`, { headers })).status, 401);
  const alone = await client.run(['user', 'list']);
  assert.equal(alone.code, 2);
  assert.match(alone.stderr, /trivet login/);
});
