/** The real program from the outside: tokens, repositories, hooks, events, and receivers that others wrote. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { signBody } from '../../src/webhooks/profiles/signature.ts';
import { createSampleEvent } from '../../src/webhooks/sample-event.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { runTrivet } from '../support/run-trivet.ts';
import { type Program, startProgram } from '../support/start-program.ts';

let program: Program;
let token: string;
const environment = { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' };

async function trivet(...argv: string[]): Promise<string> {
  const run = await runTrivet(argv, { env: { ...environment, TRIVET_DATA_DIR: program.dataDir } });
  assert.equal(run.code, 0, `${argv.join(' ')}: ${run.stderr}`);
  return run.stdout.trim();
}

before(async () => {
  program = await startProgram(environment);
  await trivet('user', 'create', '--login', 'grace', '--name', 'Grace');
  token = await trivet('token', 'create', '--user', 'grace', '--name', 't', '--scope', 'all_hook', 'all_projects');
  await trivet('repo', 'create', 'grace/doors');
});

after(async () => {
  await program[Symbol.asyncDispose]();
});

// biome-ignore lint/suspicious/noExplicitAny: a test looks into any answer
async function call(method: string, path: string, json?: unknown, headers: object = {}): Promise<[number, any]> {
  const response = await fetch(`${program.httpUrl}/api/v5${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body: json === undefined ? null : JSON.stringify(json),
  });
  const text = await response.text();
  return [response.status, text === '' ? undefined : JSON.parse(text)];
}

const HOOKS = '/repos/grace/doors/hooks';
/** What waits for many processes ends at last when one of them does not. */
const PATIENTLY = { timeout: 180_000 };
const push = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', Date.UTC(2026, 0, 1));

async function createHook(json: object): Promise<{ id: number; url: string }> {
  const [status, hook] = await call('POST', HOOKS, json);
  assert.equal(status, 201, JSON.stringify(hook));
  return hook;
}

/** Creates a hook for one test only. */
async function withHook(json: object, run: (hook: { id: number }) => Promise<void>): Promise<void> {
  const hook = await createHook(json);
  try {
    await run(hook);
  } finally {
    await call('DELETE', `${HOOKS}/${hook.id}`);
  }
}

const CARRIERS: [title: string, send: (url: string, token: string) => Promise<Response>][] = [
  ['Authorization: Bearer', (url, secret) => fetch(url, { headers: { authorization: `Bearer ${secret}` } })],
  ['Authorization: token', (url, secret) => fetch(url, { headers: { authorization: `token ${secret}` } })],
  ['PRIVATE-TOKEN', (url, secret) => fetch(url, { headers: { 'private-token': secret } })],
  ['access_token in the query', (url, secret) => fetch(`${url}?access_token=${secret}`)],
];

for (const [title, send] of CARRIERS)
  test(`the hooks are listed with the token as ${title}`, async () => {
    const response = await send(`${program.httpUrl}/api/v5${HOOKS}`, token);
    assert.equal(response.status, 200);
    assert.ok(Array.isArray(await response.json()));
  });

test('a hook is made with the token in the form, as the contract documents it', async () => {
  const form = { access_token: token, url: 'http://127.0.0.1:9109/', password: 'p', tag_push_events: 'true' };
  const response = await fetch(`${program.httpUrl}/api/v5${HOOKS}`, {
    method: 'POST',
    body: new URLSearchParams(form),
  });
  assert.equal(response.status, 201);
  const hook = (await response.json()) as { id: number; password: string; tag_push_events: boolean };
  assert.deepEqual([hook.password, hook.tag_push_events], ['p', true]);
  const multipart = new FormData();
  for (const [name, value] of Object.entries({ ...form, url: 'http://127.0.0.1:9110/' })) multipart.set(name, value);
  const changed = await fetch(`${program.httpUrl}/api/v5${HOOKS}/${hook.id}`, { method: 'PATCH', body: multipart });
  assert.equal(changed.status, 200);
  assert.equal(((await changed.json()) as { url: string }).url, 'http://127.0.0.1:9110/');
  assert.equal((await call('DELETE', `${HOOKS}/${hook.id}`))[0], 204);
});

test('an announced push arrives signed, in every way the profile promises', async () => {
  await using receiver: Receiver = await startReceiver();
  await withHook({ url: receiver.url, encryption_type: 1, password: 'key' }, async () => {
    const [status, answer] = await call('POST', '/repos/grace/doors/events', push);
    assert.equal(status, 202);
    await receiver.waitFor(1);
    const { headers, body } = receiver.received[0]!;
    assert.equal(headers['user-agent'], 'git-gitcode-hook');
    assert.equal(headers['x-gitcode-event'], 'Push Hook');
    assert.equal(headers['x-gitcode-delivery'], answer.deliveries[0].uuid);
    assert.equal(headers['x-gitcode-signature-256'], signBody(Buffer.from('key'), body));
    assert.equal(headers['x-gitcode-token'], undefined);
    const verified = new Webhook('key', { format: 'raw' }).verify(body, headers as Record<string, string>);
    assert.equal((verified as { uuid: string }).uuid, answer.deliveries[0].uuid);
    assert.equal(JSON.parse(body.toString()).project.path_with_namespace, 'grace/doors');
  });
});

test('after a change of the key deliveries carry the signature of the former one too', async () => {
  await using receiver: Receiver = await startReceiver();
  await withHook({ url: receiver.url, encryption_type: 1, password: 'former' }, async ({ id }) => {
    await call('PATCH', `${HOOKS}/${id}`, { url: receiver.url, password: 'current' });
    await call('POST', '/repos/grace/doors/events', push);
    await receiver.waitFor(1);
    const { headers, body } = receiver.received[0]!;
    for (const key of ['former', 'current'])
      assert.ok(new Webhook(key, { format: 'raw' }).verify(body, headers as Record<string, string>));
    assert.equal(headers['x-gitcode-signature-256'], signBody(Buffer.from('current'), body));
  });
});

test('a password outside of ASCII arrives as its UTF-8 bytes', async () => {
  await using receiver: Receiver = await startReceiver();
  await withHook({ url: receiver.url, password: 'пароль-密码' }, async ({ id }) => {
    await call('POST', `${HOOKS}/${id}/tests`);
    const token = String(receiver.received[0]?.headers['x-gitcode-token']);
    assert.equal(Buffer.from(token, 'latin1').toString('utf8'), 'пароль-密码');
  });
});

test('a test delivery answers 204 whatever the receiver says, and the hook tells what it said', async () => {
  await using receiver: Receiver = await startReceiver((_, response) => response.writeHead(503).end('not now'));
  await withHook({ url: receiver.url, push_events: false, note_events: true }, async ({ id }) => {
    assert.deepEqual(await call('POST', `${HOOKS}/${id}/tests`), [204, undefined]);
    assert.equal(receiver.received.length, 1);
    const [, hook] = await call('GET', `${HOOKS}/${id}`);
    assert.deepEqual([hook.result, hook.result_code], ['not now', 503]);
    const [, log] = await call('GET', `${HOOKS}/${id}/deliveries`);
    assert.equal(log[0].attempts, 1);
  });
  const unreachable = await createHook({ url: `http://127.0.0.1:${await findFreePort()}/` });
  assert.deepEqual(await call('POST', `${HOOKS}/${unreachable.id}/tests`), [204, undefined]);
  const [, hook] = await call('GET', `${HOOKS}/${unreachable.id}`);
  assert.equal(hook.result_code, 0);
  assert.match(hook.result, /\w+/);
  await call('DELETE', `${HOOKS}/${unreachable.id}`);
});

test('the command line makes hooks, announces, tests and shows deliveries beside the service', PATIENTLY, async () => {
  await using receiver: Receiver = await startReceiver();
  const created = await trivet(
    'hook',
    'create',
    'grace/doors',
    '--url',
    receiver.url,
    '--events',
    'issue,note',
    '--password',
    'pw',
    '--json',
  );
  const { id } = JSON.parse(created);
  const sent = await trivet('event', 'send', 'grace/doors', '--kind', 'issue', '--sample', '--count', '3');
  assert.equal(sent, '3 announced, 3 deliveries made');
  await receiver.waitFor(3);
  assert.deepEqual(new Set(receiver.received.map(({ headers }) => headers['x-gitcode-token'])), new Set(['pw']));
  assert.match(await trivet('hook', 'test', 'grace/doors', String(id)), /^200 in \d+ ms \(delivery \d+\)$/);
  assert.equal(receiver.received.length, 4);
  const lines = (await trivet('hook', 'deliveries', 'grace/doors', String(id), '--json')).split('\n');
  assert.equal(lines.length, 4);
  const { id: deliveryId, uuid } = JSON.parse(lines[3] ?? '{}');
  await trivet('hook', 'redeliver', 'grace/doors', String(id), String(deliveryId));
  await receiver.waitFor(5);
  assert.equal(receiver.received[4]?.headers['x-gitcode-delivery'], uuid);
  assert.match(await trivet('hook', 'list', 'grace/doors'), /issue,note/);
  await trivet('hook', 'delete', 'grace/doors', String(id));
  assert.match(await trivet('repo', 'list', 'grace'), /grace\/doors/);
});

test('a real git push reaches a receiver with its commit', PATIENTLY, async (t) => {
  await using receiver: Receiver = await startReceiver();
  const folder = mkdtempSync(join(tmpdir(), 'trivet-push-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const bare = join(folder, 'doors.git');
  const git = (...argv: string[]) => execFileSync('git', argv, { cwd: folder, encoding: 'utf8' }).trim();
  git('init', '-q', '--bare', '-b', 'main', bare);
  git('init', '-q', '-b', 'main', 'work');
  const inWork = (...argv: string[]) =>
    git('-C', 'work', '-c', 'user.name=Grace', '-c', 'user.email=g@example.com', ...argv);
  inWork('commit', '-q', '--allow-empty', '-m', 'Close the doors');
  writeFileSync(join(folder, 'token'), token);
  await trivet(
    'git-hook',
    'install',
    bare,
    '--repo',
    'grace/doors',
    '--url',
    program.httpUrl,
    '--token-file',
    join(folder, 'token'),
  );
  await withHook({ url: receiver.url, encryption_type: 1, password: 'key' }, async () => {
    inWork('push', '-q', bare, 'main');
    await receiver.waitFor(1);
    const body = JSON.parse(receiver.received[0]?.body.toString() ?? '{}');
    assert.equal(body.after, inWork('rev-parse', 'HEAD'));
    assert.equal(body.commits[0].message, 'Close the doors\n');
    assert.equal(body.commits[0].author.name, 'Grace');
    assert.equal(body.total_commits_count, 1);
  });
});

test('trivet listen accepts what is signed with its key and refuses the rest', async () => {
  const port = await findFreePort();
  const listener = spawn(
    process.execPath,
    ['src/cli/trivet.ts', 'listen', '--port', String(port), '--secret', 'key', '--json'],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  try {
    await once(listener.stderr, 'data');
    const url = `http://127.0.0.1:${port}/`;
    for (const [hook, code, result] of [
      [{ url, encryption_type: 1, password: 'key' }, 200, 'signature ok\n'],
      [{ url, encryption_type: 1, password: 'other' }, 401, 'wrong signature\n'],
      [{ url, encryption_type: 1, password: 'key', profile: 'gitee' }, 200, 'signature ok\n'],
      [{ url, encryption_type: 1, password: 'key', profile: 'github' }, 200, 'signature ok\n'],
      [{ url, encryption_type: 1, password: 'key', profile: 'gitlab' }, 200, 'signature ok\n'],
      [{ url }, 401, 'no signature\n'],
    ] as const)
      await withHook(hook, async ({ id }) => {
        await call('POST', `${HOOKS}/${id}/tests`);
        const [, tested] = await call('GET', `${HOOKS}/${id}`);
        assert.deepEqual([tested.result_code, tested.result], [code, result], JSON.stringify(hook));
      });
  } finally {
    listener.kill();
    await once(listener, 'close');
  }
});

/** The receiver of Debian's package `webhook` (adnanh/webhook, written in Go). */
const hasWebhook = hasProgram('webhook');

function hasProgram(name: string): boolean {
  try {
    execFileSync('which', [name], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

test("Debian's webhook receiver accepts signed and password deliveries and refuses others", {
  skip: !hasWebhook && process.env.CI !== 'true' && 'the package webhook is not installed',
}, async (t) => {
  assert.ok(hasWebhook, 'apt-get install webhook');
  const folder = mkdtempSync(join(tmpdir(), 'trivet-webhook-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const port = await findFreePort();
  const rule = (id: string, match: object) => ({
    id,
    'execute-command': '/bin/true',
    'response-message': `${id} accepted`,
    'trigger-rule': { match },
    'trigger-rule-mismatch-http-response-code': 401,
  });
  const signed = { type: 'payload-hmac-sha256', secret: 'key' };
  const header = (name: string) => ({ parameter: { source: 'header', name } });
  const rules = [
    rule('signed', { ...signed, ...header('X-GitCode-Signature-256') }),
    rule('github', { ...signed, ...header('X-Hub-Signature-256') }),
    rule('password', { type: 'value', value: 'pw', ...header('X-GitCode-Token') }),
  ];
  writeFileSync(join(folder, 'hooks.json'), JSON.stringify(rules));
  const child = spawn(
    'webhook',
    ['-hooks', join(folder, 'hooks.json'), '-ip', '127.0.0.1', '-port', String(port), '-verbose'],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  t.after(async () => {
    child.kill();
    await once(child, 'close');
  });
  await waitForLine(child.stdout, child.stderr, /serving hooks on/);
  const url = (id: string) => `http://127.0.0.1:${port}/hooks/${id}`;
  for (const [hook, code, result] of [
    [{ url: url('signed'), encryption_type: 1, password: 'key' }, 200, /signed accepted/],
    [{ url: url('signed'), encryption_type: 1, password: 'another' }, 500, /evaluating hook rules/],
    [{ url: url('signed'), encryption_type: 0, password: 'key' }, 401, /rules were not satisfied/],
    [{ url: url('github'), encryption_type: 1, password: 'key', profile: 'github' }, 200, /github accepted/],
    [{ url: url('password'), encryption_type: 0, password: 'pw' }, 200, /password accepted/],
    [{ url: url('password'), encryption_type: 0, password: 'wrong' }, 401, /rules were not satisfied/],
  ] as const)
    await withHook(hook, async ({ id }) => {
      await call('POST', `${HOOKS}/${id}/tests`);
      const [, tested] = await call('GET', `${HOOKS}/${id}`);
      assert.equal(tested.result_code, code, JSON.stringify(hook));
      assert.match(tested.result, result);
    });
  // Somebody in between who changes one byte of a signed delivery.
  const body = Buffer.from(JSON.stringify(push));
  const tampered = await fetch(url('signed'), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-gitcode-signature-256': signBody(Buffer.from('key'), body) },
    body: `${body.toString().slice(0, -1)} }`,
  });
  assert.equal(tampered.status, 500);
});

async function waitForLine(...sources: [NodeJS.ReadableStream, NodeJS.ReadableStream, RegExp]): Promise<void> {
  const [stdout, stderr, pattern] = sources;
  let text = '';
  await new Promise<void>((resolve) => {
    for (const stream of [stdout, stderr])
      stream.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        if (pattern.test(text)) resolve();
      });
  });
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}
