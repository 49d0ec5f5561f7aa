/** An administrator's tokens and the webhooks of others, with the real program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFormClient, readHidden } from '../support/network/form-client.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { startProgram } from '../support/programs/start-program.ts';

const PASSWORD = 'correct horse battery';
const CALLBACK = 'https://client.example/callback';

test('hooks of others are open to an administrator’s token only with the scope admin', async () => {
  await using program = await startProgram();
  const trivet = async (argv: readonly string[], input = '') => {
    const run = await runTrivet(argv, { env: { TRIVET_DATA_DIR: program.dataDir }, input });
    assert.equal(run.code, 0, run.stderr);
    return run.stdout.trim();
  };
  await trivet(['user', 'create', '--login', 'grace', '--name', 'Grace']);
  await trivet(['repo', 'create', 'grace/doors']);
  await trivet(['user', 'create', '--login', 'root', '--name', 'Root', '--admin', '--password-stdin'], PASSWORD);
  const app = ['app', 'create', '--name', 'Bot', '--redirect-uri', CALLBACK, '--json'];
  const { client_id, client_secret } = JSON.parse(await trivet(app)) as Record<string, string>;
  const client = { client_id: String(client_id), client_secret: String(client_secret) };
  const browser = createFormClient(program.httpUrl);
  await browser.submit('/sign-in', '/sign-in', { login: 'root', password: PASSWORD });

  const statusOf = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${program.httpUrl}/api/v5/repos/grace/doors/hooks`, { headers })).status;
  };
  const grant = async (scope: string) => {
    const query = {
      client_id: client.client_id,
      redirect_uri: CALLBACK,
      response_type: 'code',
      scope,
      prompt: 'consent',
    };
    const page = await browser.get(`/oauth/authorize?${new URLSearchParams(query).toString()}`);
    const hidden = readHidden(page.body, '/oauth/authorize');
    const boxes = scope.split(' ').map((name): [string, string] => ['scope', name]);
    const form = new URLSearchParams([...Object.entries(hidden), ...boxes, ['narrow', '1'], ['decision', 'allow']]);
    const cookie = [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { cookie, origin: program.httpUrl };
    const init = { method: 'POST', body: form, headers, redirect: 'manual' } as const;
    const answer = await fetch(`${program.httpUrl}/oauth/authorize`, init);
    const code = new URL(answer.headers.get('location') ?? '').searchParams.get('code') ?? '';
    const body = new URLSearchParams({ grant_type: 'authorization_code', code, ...client });
    const tokens = await fetch(`${program.httpUrl}/oauth/token`, { method: 'POST', body });
    return ((await tokens.json()) as { access_token: string }).access_token;
  };
  assert.equal(await statusOf(await grant('all_hook')), 403);
  assert.equal(await statusOf(await grant('all_hook admin')), 200);

  const make = (...scopes: string[]) =>
    trivet(['token', 'create', '--user', 'root', '--name', 't', '--scope', ...scopes]);
  assert.equal(await statusOf(await make('all_hook')), 403);
  assert.equal(await statusOf(await make('all_hook', 'admin')), 200);
});
