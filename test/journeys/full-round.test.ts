/** One round through everything a person does, with the real program, a browser and git. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { listenForCallback } from '../support/network/callback.ts';
import { startReceiver } from '../support/network/receiver.ts';
import { findReasonToSkipPages, launchBrowser, openPage } from '../support/pages/browser.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';

async function setUp(page: Page, program: Program): Promise<void> {
  await page.goto(/http\S+\/setup\?token=\S+/.exec(program.output())?.[0] ?? '');
  const given = { login: 'ada', name: 'Ada Lovelace', email: 'ada@example.org', password: 'correct horse battery' };
  for (const [name, value] of Object.entries(given)) await page.fill(`[name=${name}]`, value);
  await page.keyboard.press('Enter');
  await page.waitForSelector('h1:has-text("Overview")');
}

async function createApplication(page: Page, program: Program, redirectUri: string) {
  await page.goto(`${program.httpUrl}/account/applications/new`);
  await page.fill('[name=name]', 'Door bot');
  await page.fill('[name=redirect_uri]', redirectUri);
  await page.locator('form:has([name=redirect_uri]) button').last().click();
  await page.waitForSelector('text=The application is created');
  const codes = await page.locator('main code').allTextContents();
  const clientId = codes.find((code) => code.startsWith('app_')) ?? '';
  return { clientId, clientSecret: codes.find((code) => code.startsWith('tvt_s_')) ?? '' };
}

/** A bare repository whose pushes are published, and a way to push to it. */
async function installGitHook(
  program: Program,
  token: string,
): Promise<{ push: (message: string) => void; folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-round-'));
  const git = (...argv: string[]) => void execFileSync('git', argv, { cwd: folder, stdio: 'pipe' });
  git('init', '-q', '--bare', '-b', 'main', 'doors.git');
  git('init', '-q', '-b', 'main', 'work');
  writeFileSync(join(folder, 'token'), token);
  const argv = ['git-hook', 'install', join(folder, 'doors.git'), '--repo', 'ada/doors', '--url', program.httpUrl];
  const run = await runTrivet([...argv, '--token-file', join(folder, 'token')]);
  assert.equal(run.code, 0, run.stderr);
  const push = (message: string) => {
    const author = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org'];
    git('-C', 'work', ...author, 'commit', '-q', '--allow-empty', '-m', message);
    git('-C', 'work', 'push', '-q', join(folder, 'doors.git'), 'main');
  };
  return { push, folder };
}

test('one round leads from the set-up link to a redelivery: account, application, consent, token, webhook, push, failure, log', {
  skip: findReasonToSkipPages(),
  timeout: 240_000,
}, async () => {
  await using undo = new AsyncDisposableStack();
  const program = undo.use(await startProgram({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' }));
  const callback = undo.use(await listenForCallback());
  let status = 200;
  const receiver = undo.use(await startReceiver((_, response) => void response.writeHead(status).end(`${status}`)));
  const browser = undo.adopt(await launchBrowser(), (opened) => opened.close());
  const page = await openPage(browser);
  await setUp(page, program);
  const { clientId, clientSecret } = await createApplication(page, program, callback.url);

  const asked = { client_id: clientId, redirect_uri: callback.url, response_type: 'code', state: 's' };
  const scope = 'all_user all_projects all_hook all_key';
  await page.goto(`${program.httpUrl}/oauth/authorize?${new URLSearchParams({ ...asked, scope }).toString()}`);
  await page.uncheck('[value=all_key]');
  const [back] = await Promise.all([callback.nextUrl(), page.click('button[value=allow]')]);
  const code = back.searchParams.get('code') ?? '';
  const query = new URLSearchParams({ grant_type: 'authorization_code', code, client_id: clientId });
  const exchanged = await fetch(`${program.httpUrl}/oauth/token?${query.toString()}`, {
    method: 'POST',
    body: new URLSearchParams({ client_secret: clientSecret }),
  });
  const tokens = (await exchanged.json()) as { access_token: string; scope: string };
  assert.equal(tokens.scope, 'all_user all_projects all_hook', 'without what was left out');

  // biome-ignore lint/suspicious/noExplicitAny: a test looks into any answer
  const call = async (method: string, path: string, json?: object): Promise<any> => {
    const response = await fetch(`${program.httpUrl}/api/v5${path}`, {
      method,
      headers: { authorization: `Bearer ${tokens.access_token}`, 'content-type': 'application/json' },
      body: json === undefined ? null : JSON.stringify(json),
    });
    assert.ok(response.ok, `${method} ${path}: ${response.status}`);
    return await response.json();
  };
  await call('POST', '/user/repos', { name: 'doors' });
  const { id } = await call('POST', '/repos/ada/doors/hooks', { url: receiver.url, encryption_type: 1, password: 'k' });
  const { push, folder } = await installGitHook(program, tokens.access_token);
  undo.defer(() => rmSync(folder, { recursive: true, force: true }));

  push('Open the doors');
  await receiver.waitFor(1);
  status = 500;
  push('Close the doors');
  await receiver.waitFor(3);
  assert.equal(
    receiver.received[1]?.headers['x-gitcode-delivery'],
    receiver.received[2]?.headers['x-gitcode-delivery'],
  );
  status = 200;
  const [failing] = await call('GET', `/repos/ada/doors/hooks/${id}/deliveries`);
  await call('POST', `/repos/ada/doors/hooks/${id}/deliveries/${failing.id}/redeliver`);
  await receiver.waitFor(4);
  assert.deepEqual(receiver.received[3]?.body, receiver.received[1]?.body, 'the same bytes');

  const shown = `${program.httpUrl}/webhooks/ada/doors/${id}/deliveries/${failing.id}`;
  await page.goto(shown);
  const main = page.locator('main');
  while ((await main.filter({ hasText: 'succeeded' }).count()) === 0) await page.goto(shown);
  assert.match((await main.textContent()) ?? '', /Attempt 3[\s\S]*Attempt 2[\s\S]*Attempt 1/);
  assert.equal(await program.stop(), 0);
});
