/** Commands about webhooks, applications and tokens at a running service: the same output as on its store, on both engines. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { findFreePort } from '../support/basics/free-port.ts';
import { startReceiver } from '../support/network/receiver.ts';
import { runTrivet, type TrivetRun } from '../support/programs/run-trivet.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, engines, findReasonToSkip, type TestEngine } from '../support/store/engines.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-remote-webhooks-'));
const programs = new AsyncDisposableStack();
after(async () => {
  await programs.disposeAsync();
  rmSync(folder, { recursive: true });
});

const SETTINGS = { PREDICTION_LEARNING: 'off', WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' };

interface Setting {
  readonly program: Program;
  /** On the store of the service. */
  readonly here: (line: string) => Promise<TrivetRun>;
  /** At the service, from a machine without a store, as an administrator. */
  readonly there: (line: string) => Promise<TrivetRun>;
  /** A token of the administrator. */
  readonly makeToken: (scope: string) => Promise<string>;
  readonly startSecond: () => Promise<Program>;
}

for (const engine of engines)
  for (const [title, check] of [
    ['webhooks and repositories at a service are those of its store', checkWebhooks],
    ['applications and tokens at a service are those of its store', checkApplications],
    ['refusals of a service say what is missing', checkRefusals],
  ] as const)
    test(`${title} (${engine})`, { skip: findReasonToSkip(engine) }, async () => check(await findSetting(engine)));

test('two processes on one database show the same', { skip: findReasonToSkip('postgres') }, async () =>
  checkTwoProcesses(await findSetting('postgres')),
);

const settings = new Map<TestEngine, Promise<Setting>>();

/** One service an engine for all tests. The first test looks at all webhooks and their changes, so none is made before it. */
function findSetting(engine: TestEngine): Promise<Setting> {
  const setting = settings.get(engine) ?? createSetting(engine);
  settings.set(engine, setting);
  return setting;
}

async function createSetting(engine: TestEngine): Promise<Setting> {
  const { dataDir, databaseUrl } = await createStorePlace(engine);
  const env = { TRIVET_DATA_DIR: dataDir, ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }) };
  const program = programs.use(await startProgram({ ...SETTINGS, ...env }, dataDir));
  const here = (line: string) => runTrivet(line.split(' '), { env: { ...env, ...SETTINGS } });
  assert.equal((await here('user create --login root --name Root --admin')).code, 0);
  const makeToken = async (scope: string) =>
    (await here(`token create --user root --name ${scope.slice(0, 9)} --scope ${scope}`)).stdout.trim();
  const remote = {
    XDG_CONFIG_HOME: join(folder, 'none'),
    TRIVET_DATA_DIR: join(folder, 'no-store'),
    TRIVET_URL: program.httpUrl,
    TRIVET_TOKEN: await makeToken('admin,events:write'),
  };
  const there = (line: string) => runTrivet(line.split(' '), { env: remote });
  const startSecond = () => startProgram({ ...SETTINGS, ...env }, dataDir);
  return { program, here, there, makeToken, startSecond };
}

async function read(run: Promise<TrivetRun>): Promise<string> {
  const { code, stdout, stderr } = await run;
  assert.equal(code, 0, stderr);
  return stdout;
}

async function checkSame({ here, there }: Setting, lines: readonly string[]): Promise<void> {
  for (const line of lines) {
    const [remote, local] = await Promise.all([read(there(line)), read(here(line))]);
    assert.equal(remote, local, line);
  }
}

async function checkWebhooks(setting: Setting): Promise<void> {
  const { here, there } = setting;
  let status = 500;
  await using receiver = await startReceiver((_, response) => void response.writeHead(status).end('thanks'));
  assert.match(await read(there('repo create root/doors --private')), /^Created root\/doors \(project_id \d+\)\n$/);
  const made = await read(there(`hook create root/doors --url ${receiver.url} --password sesame --json`));
  const { id } = JSON.parse(made) as { id: number };
  assert.doesNotMatch(made, /sesame|"password"/);
  assert.match(await read(here(`hook show root/doors ${id} --json`)), /"password":"sesame"/);

  assert.equal(await read(there('event send root/doors --sample --count 2')), '2 published, 2 deliveries made\n');
  const failed = await there(`hook test root/doors ${id}`);
  assert.equal(failed.code, 1);
  assert.match(failed.stdout, /^500 in \d+ ms \(delivery \d+\)\n$/);
  assert.equal(failed.stderr, 'thanks\nThe receiver did not accept the test\n');
  status = 200;
  const tested = JSON.parse(await read(there(`hook test root/doors ${id} --json`)));
  assert.deepEqual([tested.accepted, tested.attempt.status_code, tested.state], [true, 200, 'succeeded']);
  const unsubscribed = await there(`hook test root/doors ${id} --event note`);
  assert.match(unsubscribed.stderr, /event must be one that it is subscribed to \(push\), got "note"/);
  const failedId = /delivery (\d+)/.exec(failed.stdout)?.[1];
  assert.match(await read(there(`hook redeliver root/doors ${id} ${failedId}`)), /^200 in \d+ ms/);
  assert.match(
    await read(there(`hook replay root/doors ${id} --since 2026-01-01T00:00:00Z`)),
    /^\d+ deliver(y|ies) of webhook \d+ will be sent again\n$/,
  );
  assert.match(await read(there(`hook update root/doors ${id} --events push,note --profile github`)), /^Updated/);
  assert.match(await read(there(`hook disable root/doors ${id}`)), /is off\n$/);
  await checkSame(setting, [
    'repo list',
    'repo list root',
    'repo show root/doors',
    'hook list root/doors',
    `hook show root/doors ${id}`,
    `hook all show ${id} --json`,
    `hook deliveries root/doors ${id}`,
    `hook deliveries root/doors ${id} --json --limit 2`,
    `hook deliveries root/doors ${id} --state succeeded --status 2xx --subject main --json`,
    `hook deliveries root/doors ${id} --delivery ${failedId}`,
  ]);
  assert.equal(await read(there(`hook delete root/doors ${id}`)), `Deleted webhook ${id} of root/doors\n`);
  assert.equal(await read(there('repo delete root/doors')), 'Deleted root/doors\n');
  const kinds = (await read(there('audit --by root --json'))).trim().split('\n');
  const changes = kinds.map((line) => JSON.parse(line).kind).filter((kind: string) => /^(hook|repository)_/.test(kind));
  assert.deepEqual(changes.reverse(), [
    'repository_created',
    'hook_created',
    'hook_changed',
    'hook_disabled',
    'hook_deleted',
    'repository_deleted',
  ]);
}

async function checkApplications(setting: Setting): Promise<void> {
  const { there, makeToken } = setting;
  const create = 'app create --name Board --redirect-uri https://board.example/cb --owner root --json';
  const { client_id, client_secret } = JSON.parse(await read(there(create))) as Record<string, string>;
  assert.match(client_secret ?? '', /^tvt_s_/);
  assert.match(await read(there(`app add-secret ${client_id}`)), /^tvt_s_\S+\n$/);
  await checkSame(setting, ['app list', 'app list --json', `app show ${client_id}`]);
  assert.equal(await read(there(`app remove-secret ${client_id} 1`)), 'Removed\n');
  assert.equal(await read(there(`app disable ${client_id}`)), 'Disabled\n');
  assert.equal(await read(there(`app delete ${client_id} --json`)), `{"clientId":"${client_id}"}\n`);

  await makeToken('predict');
  await checkSame(setting, ['token list root']);
  const [first = ''] = (await read(there('token list root --json'))).split('\n');
  const { tokenId, scopes } = JSON.parse(first) as { tokenId: string; scopes: string[] };
  assert.deepEqual(scopes, ['predict']);
  assert.equal(await read(there(`token revoke root ${tokenId}`)), 'Revoked\n');
}

async function checkRefusals({ program, there, makeToken }: Setting): Promise<void> {
  const token = await makeToken('models:read');
  const closed = `http://127.0.0.1:${await findFreePort()}`;
  const refusals: [line: string, code: number, words: RegExp][] = [
    [`hook all list --token ${token}`, 1, /needs the scope admin:hooks .*trivet login \S+ --scope admin:hooks/],
    [`app list --token ${token}`, 1, /needs the scope admin:applications/],
    [`token list root --token ${token}`, 1, /needs the scope admin:people/],
    [`event send root/doors --sample --token ${token}`, 1, /needs the scope events:write/],
    ['repo list --token wrong', 1, /refused the token.*Sign in with: trivet login/],
    [
      `hook list root/doors --service ${closed} --token ${token}`,
      1,
      /Cannot reach http:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED/,
    ],
    ['hook list root/unknown', 1, /Project not found:root\/unknown/],
    ['hook show root/unknown 1', 1, /Project not found:root\/unknown/],
    ['app show app_unknown', 1, /Cannot find an application with the client id "app_unknown"/],
    ['token revoke root unknown', 1, /no token has this id/],
    ['hook create root/unknown --url ftp://1.1.1.1/', 1, /Project not found/],
    ['token create --user root --name t --scope all_user', 2, /an administrator could act as any person/],
    [
      `token create --user root --name t --scope all_user --service ${program.httpUrl}`,
      2,
      /Run the command on the store/,
    ],
  ];
  for (const [line, code, words] of refusals) {
    const run = await there(line);
    assert.match(run.stderr, words, line);
    assert.equal(run.code, code, line);
  }
}

/** What one process changed is seen through the other at once. */
async function checkTwoProcesses({ there, makeToken, startSecond }: Setting): Promise<void> {
  await using second = await startSecond();
  const atSecond = `--service ${second.httpUrl} --token ${await makeToken('admin')}`;
  await read(there('repo create root/windows'));
  await read(there(`hook create root/windows --url http://127.0.0.1:9001/ ${atSecond}`));
  const { id } = JSON.parse(await read(there('hook list root/windows --json'))) as { id: number };
  assert.match(await read(there(`hook disable root/windows ${id}`)), /is off\n$/);
  assert.match(await read(there(`hook all list --state off ${atSecond}`)), /root\/windows/);
}
