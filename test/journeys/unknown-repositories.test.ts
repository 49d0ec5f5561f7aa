/** A token that is limited to a repository which does not exist: the page, the API and the command name that repository. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPersonalToken } from '../../src/authorization/tokens/personal-token.ts';
import { listPersonalTokens } from '../../src/authorization/tokens/personal-token-store.ts';
import { statement } from '../../src/database/store.ts';
import { realWorld } from '../../src/world.ts';
import { startConsoleService } from '../support/pages/console-service.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createDataDir } from '../support/programs/start-program.ts';

const TOKENS = '/account/tokens';

test('a new token names the repositories of its limit that its person does not reach, on the page and in the API', async (t) => {
  const service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
  t.after(() => service[Symbol.asyncDispose]());
  const { id: userId } = await service.addUser('ada');
  await service.addUser('eve');
  const [ada, eve] = [await service.openAs('ada'), await service.openAs('eve')];
  for (const [client, owner, visibility] of [
    [ada, 'ada', ''],
    [eve, 'eve', '1'],
  ] as const) {
    const fields = { owner, name: 'doors', description: '', private: visibility };
    assert.equal((await client.submit('/webhooks/new', '/webhooks/new', fields)).status, 303);
  }
  const create = async (repositories: string, language = 'en') => {
    ada.jar.set('trivet_language', language);
    const fields = { name: 'CI', days: '30', scope: 'all_hook', repositories };
    const { location } = await ada.submit(TOKENS, TOKENS, fields);
    return (await ada.get(location ?? '')).body;
  };
  assert.doesNotMatch(await create('Ada/Doors'), /notice warn/, 'in any case');
  assert.match(
    await create('ada/doors ada/doorz'),
    /role="alert">ada\/doorz does not exist, or is private and not yours\./,
  );
  const both = await create('ada/doorz eve/doors');
  assert.match(both, /role="alert">ada\/doorz, eve\/doors do not exist, or are private and not yours\./);
  assert.match(await create('ada/doorz', 'zh-CN'), /role="alert">ada\/doorz 不存在/);

  const grants = { userId, name: 'parent', scopes: ['all_user', 'all_hook'], expiresAtMs: undefined } as const;
  const { secret } = await createPersonalToken(service.store, realWorld, grants);
  for (const [repositories, expected] of [
    [['ada/doors', 'ada/doorz'], ['ada/doorz']],
    [undefined, []],
  ]) {
    const answer = await fetch(`${service.url}/api/v5/user/access_tokens`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'CI', scopes: ['all_hook'], repositories }),
    });
    assert.equal(answer.status, 201);
    assert.deepEqual(((await answer.json()) as { unknown_repositories: string[] }).unknown_repositories, expected);
  }
});

test('trivet token create warns of repositories that do not exist, beside the token', async () => {
  const env = { TRIVET_DATA_DIR: createDataDir() };
  const trivet = (line: string) => runTrivet(line.split(' '), { env });
  for (const line of ['user create --login ada --name Ada', 'repo create ada/doors'])
    assert.equal((await trivet(line)).code, 0, line);
  const create = 'token create --user ada --name CI --scope all_hook --repository';
  const known = await trivet(`${create} ada/doors`);
  assert.deepEqual([known.code, known.stderr], [0, '']);
  const unknown = await trivet(`${create} ada/doors ada/doorz`);
  assert.equal(unknown.code, 0);
  assert.match(unknown.stdout, /^\S+\n$/, 'the token alone');
  assert.match(unknown.stderr, /^Warning: "ada\/doorz" does not exist, or ada may not see it\./);
  const { stdout, stderr } = await trivet(`${create} ada/doorz --json`);
  assert.deepEqual([JSON.parse(stdout).unknownRepositories, stderr], [['ada/doorz'], '']);
});

test('where the repositories cannot be read, no token is made: its text would be lost', async (t) => {
  const service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
  t.after(() => service[Symbol.asyncDispose]());
  const { id: userId } = await service.addUser('ada');
  const ada = await service.openAs('ada');
  const grants = { userId, name: 'parent', scopes: ['all_user', 'all_hook'], expiresAtMs: undefined } as const;
  const { secret } = await createPersonalToken(service.store, realWorld, grants);
  await service.store.write(
    statement('take-repositories-away', 'ALTER TABLE repositories RENAME TO repositories_away'),
    [],
  );
  const answer = await fetch(`${service.url}/api/v5/user/access_tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'CI', scopes: ['all_hook'], repositories: ['ada/doors'] }),
  });
  assert.equal(answer.status, 500);
  const fields = { name: 'CI', days: '30', scope: 'all_hook', repositories: 'ada/doors' };
  assert.match((await ada.submit(TOKENS, TOKENS, fields)).location ?? '', /^\/refused\?/);
  const tokens = await listPersonalTokens(service.store, userId);
  assert.deepEqual(
    tokens.map(({ name }) => name),
    ['parent'],
  );
});
