/** The token that an application gets for itself, with the real program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { startProgram } from '../support/programs/start-program.ts';

test('an application makes no repository for a person whose login is its client id', async () => {
  await using program = await startProgram();
  const trivet = async (argv: readonly string[]) => {
    const run = await runTrivet(argv, { env: { TRIVET_DATA_DIR: program.dataDir } });
    assert.equal(run.code, 0, run.stderr);
    return run.stdout.trim();
  };
  const created = await trivet(['app', 'create', '--name', 'Bot', '--grant', 'client_credentials', '--json']);
  const { client_id = '', client_secret = '' } = JSON.parse(created) as Record<string, string>;
  await trivet(['user', 'create', '--login', client_id, '--name', 'Namesake']);
  const grant = { grant_type: 'client_credentials', client_id, client_secret, scope: 'all_projects' };
  const body = new URLSearchParams(grant);
  const answer = await fetch(`${program.httpUrl}/oauth/token`, { method: 'POST', body });
  const { access_token } = (await answer.json()) as { access_token: string };
  const made = await fetch(`${program.httpUrl}/api/v5/user/repos`, {
    method: 'POST',
    headers: { authorization: `Bearer ${access_token}` },
    body: new URLSearchParams({ name: 'doors', path: 'doors' }),
  });
  assert.equal(made.status, 404);
});
