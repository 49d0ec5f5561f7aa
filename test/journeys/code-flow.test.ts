/** The code flow of docs/start/sign-in.md runs as documented, with a person in a real browser in between. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { startOAuthJourney } from '../support/authorization/oauth-journey.ts';
import { findReasonToSkipPages } from '../support/pages/browser.ts';

const SHOWN_CALLBACK = 'http://127.0.0.1:9000/callback';

function readBlocks(): string[] {
  const page = readFileSync('docs/start/sign-in.md', 'utf8');
  return [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block);
}

/** `npx trivet` finds the command of this package, as it does in a clone. */
function linkCommand(folder: string): void {
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  symlinkSync(resolve('bin/trivet.js'), join(folder, 'node_modules/.bin/trivet'));
  writeFileSync(join(folder, 'package.json'), '{}');
}

test('the flows of the documentation run from registration to refresh and revocation, and as far as a device waits', {
  skip: findReasonToSkipPages(),
}, async () => {
  await using journey = await startOAuthJourney();
  const folder = mkdtempSync(join(tmpdir(), 'trivet-flow-'));
  linkCommand(folder);
  const [, register, authorize, exchange, refresh, revoke, device] = readBlocks().map((block) =>
    block
      .replaceAll(SHOWN_CALLBACK, journey.callback.url)
      .replaceAll(encodeURIComponent(SHOWN_CALLBACK), encodeURIComponent(journey.callback.url)),
  );
  assert.ok(register && authorize && exchange && refresh && revoke && device);
  const script = [
    'set -euo pipefail',
    register,
    authorize,
    'echo $STATE; read -r CODE',
    exchange,
    'echo',
    refresh,
    'echo',
    revoke,
    'echo',
    'cp builder.json first.json',
    register.replace('--json', '--grant device_code refresh_token --json'),
    device,
  ].join('\n');
  const env = {
    ...process.env,
    BASE_URL: journey.program.httpUrl,
    TRIVET_DATA_DIR: journey.program.dataDir,
    PATH: `${resolve('node_modules/.bin')}${delimiter}${process.env.PATH}`,
  };
  const shell = spawn('bash', ['-c', script], { cwd: folder, env, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface(shell.stdout)[Symbol.asyncIterator]();
  const readLine = async (): Promise<string> => (await lines.next()).value ?? '';

  const url = await readLine();
  const state = await readLine();
  const answer = await journey.approveAndReturn(url);
  assert.equal(answer.searchParams.get('state'), state);
  shell.stdin.end(`${answer.searchParams.get('code')}\n`);
  const user = JSON.parse(await readLine()) as { login: string };
  const renewed = JSON.parse(await readLine()) as { scope: string; refresh_token: string };
  const revoked = await readLine();
  const address = await readLine();
  const waiting = JSON.parse(await readLine()) as { error: string };
  const [code] = await once(shell, 'close');

  assert.equal(code, 0);
  assert.equal(user.login, 'ada');
  assert.equal(renewed.scope, 'all_user all_hook');
  assert.match(renewed.refresh_token, /^tvt_r_/);
  assert.equal(revoked, '{}');
  assert.match(address, /\/device\?user_code=/);
  assert.equal(waiting.error, 'authorization_pending');
  const { client_id, client_secret } = JSON.parse(readFileSync(join(folder, 'first.json'), 'utf8'));
  const again = await fetch(`${journey.program.httpUrl}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: renewed.refresh_token,
      client_id,
      client_secret,
    }),
  });
  const refusal = (await again.json()) as { error: string };
  assert.deepEqual([again.status, refusal.error], [400, 'invalid_grant'], 'the newest token ends too');
  rmSync(folder, { recursive: true });
});
