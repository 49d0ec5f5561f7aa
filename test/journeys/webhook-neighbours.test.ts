/** The real program between programs that others wrote: git publishes, `trivet listen` and Debian's receiver take. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSampleEvent } from '../../src/webhooks/events/sample-event.ts';
import { signBody } from '../../src/webhooks/profiles/signature.ts';
import { findFreePort } from '../support/basics/free-port.ts';
import { type Receiver, startReceiver } from '../support/network/receiver.ts';
import { HOOKS, PATIENTLY, useWebhookJourney } from '../support/webhooks/webhook-journey.ts';

const journey = useWebhookJourney();
const push = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', Date.UTC(2026, 0, 1));

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
  writeFileSync(join(folder, 'token'), journey.token);
  await journey.trivet(
    'git-hook',
    'install',
    bare,
    '--repo',
    'grace/doors',
    '--url',
    journey.httpUrl,
    '--token-file',
    join(folder, 'token'),
  );
  await journey.withHook({ url: receiver.url, encryption_type: 1, password: 'key' }, async () => {
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
      await journey.withHook(hook, async ({ id }) => {
        await journey.call('POST', `${HOOKS}/${id}/tests`);
        const [, tested] = await journey.call('GET', `${HOOKS}/${id}`);
        assert.deepEqual([tested.result_code, tested.result], [code, result], JSON.stringify(hook));
      });
  } finally {
    listener.kill();
    await once(listener, 'close');
  }
});

test('what is sent to trivet listen gives the terminal no orders', async () => {
  const port = await findFreePort();
  const argv = ['src/cli/trivet.ts', 'listen', '--port', String(port), '--count', '1'];
  const listener = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'pipe'] });
  const closed = once(listener, 'close');
  let shown = '';
  listener.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  await once(listener.stderr, 'data');
  await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'a branch \u001b]0;title\u0007 \u009b2J' });
  await closed;
  assert.ok(shown.includes('a branch \\u001b]0;title\\u0007 \\u009b2J\n'), JSON.stringify(shown));
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
    await journey.withHook(hook, async ({ id }) => {
      await journey.call('POST', `${HOOKS}/${id}/tests`);
      const [, tested] = await journey.call('GET', `${HOOKS}/${id}`);
      assert.equal(tested.result_code, code, JSON.stringify(hook));
      assert.match(tested.result, result);
    });
  // A proxy that changes one byte of a signed delivery.
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
