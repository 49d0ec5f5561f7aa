import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { test } from 'node:test';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';
import { createDataDir } from '../../../test/support/programs/start-program.ts';

test('trivet app and trivet token register, change and revoke on the store directly', async () => {
  const dataDir = createDataDir();
  const run = async (...argv: string[]) => runTrivet(argv, { env: { TRIVET_DATA_DIR: dataDir } });
  try {
    assert.equal((await run('user', 'create', '--login', 'ada', '--name', 'Ada')).code, 0);
    const create = [
      'app',
      'create',
      '--name',
      'App',
      '--redirect-uri',
      'https://app.example/cb',
      '--owner',
      'ada',
      '--json',
    ];
    const registered = JSON.parse((await run(...create)).stdout) as Record<string, string>;
    const { clientId, clientSecret: secret } = registered;
    assert.deepEqual([registered.client_id, registered.client_secret], [clientId, secret], 'the names of before');
    assert.match(clientId ?? '', /^app_/);
    assert.match((await run('app', 'list')).stdout, new RegExp(`${clientId} +App +confidential +live +ada +https:`));
    const listedApp = JSON.parse(
      (await run('app', 'list', '--json')).stdout.split('\n').find((line) => line.includes('"App"')) ?? '',
    );
    assert.deepEqual([listedApp.clientId, listedApp.owner], [clientId, 'ada']);
    assert.match((await run('app', 'add-secret', clientId ?? '')).stdout, /^tvt_s_/);
    const shown = (await run('app', 'show', clientId ?? '')).stdout;
    assert.ok(!shown.includes(secret ?? ''));
    assert.equal((JSON.parse(shown) as { secrets: unknown[] }).secrets.length, 2);
    assert.match((await run('app', 'remove-secret', clientId ?? '', 'x')).stderr, /must be a whole number from 1 to 2/);
    assert.equal((await run('app', 'remove-secret', clientId ?? '', '1')).code, 0);
    assert.match((await run('audit')).stdout, /application_secret_removed .* user_created +ada /s);
    assert.equal((await run('audit', '--by', 'ada', '--json')).stdout, '', 'no command on the store was by ada');
    const asGrace = { env: { TRIVET_DATA_DIR: dataDir, SUDO_USER: 'grace' } };
    assert.equal((await runTrivet(['user', 'create', '--login', 'eve', '--name', 'Eve'], asGrace)).code, 0);
    const events = (await run('audit', '--json')).stdout.trim().split('\n');
    const byGrace = events.map((line) => JSON.parse(line) as { details?: Record<string, string> });
    const [newest] = byGrace;
    assert.deepEqual([newest?.details?.host, newest?.details?.system_user], [hostname(), userInfo().username]);
    assert.deepEqual(
      byGrace.map(({ details }) => details?.sudo_user).filter((name) => name !== undefined),
      ['grace'],
      'the person behind sudo is recorded',
    );
    assert.equal((await run('app', 'delete', clientId ?? '')).code, 0);
    assert.match((await run('app', 'show', clientId ?? '')).stderr, /Cannot find an application/);

    const token = await run('token', 'create', '--user', 'ada', '--name', 'ci', '--scope', 'all_user,all_hook');
    assert.match(token.stdout, /^tvt_p_\w{49}\n$/);
    const [listed] = (await run('token', 'list', 'ada', '--json')).stdout.trim().split('\n');
    const { tokenId, hint } = JSON.parse(listed ?? '') as Record<string, string>;
    assert.equal(token.stdout.trim().slice(-4), hint);
    assert.equal((await run('token', 'revoke', 'ada', tokenId ?? '')).code, 0);
    const dated = await run(
      'token',
      'create',
      '--user',
      'ada',
      '--name',
      'day',
      '--scope',
      'all_user all_hook',
      '--expires',
      '1d',
      '--json',
    );
    const made = JSON.parse(dated.stdout) as Record<string, string>;
    assert.match(made.token ?? '', /^tvt_p_/);
    assert.equal(made.scope, 'all_user all_hook');
    assert.match(made.expires_at ?? '', /^\d{4}-\d\d-\d\dT/);
    assert.deepEqual(
      [made.tokenId, made.scopes, made.expiresAtMs],
      [made.id, ['all_user', 'all_hook'], Date.parse(made.expires_at ?? '')],
    );
    const endless = await run(
      'token',
      'create',
      '--user',
      'ada',
      '--name',
      'x',
      '--scope',
      'all_user',
      '--expires',
      'soon',
    );
    assert.equal(endless.code, 2);
    assert.match(endless.stderr, /it must be a duration such as 45m, 12h or 90d .*, or never\./);
    const refused = await run('token', 'create', '--user', 'ada', '--name', 'ci', '--scope', 'everything');
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /--scope must be any of all_user, (?!.*openid).*, got "everything"/);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});
