/** A command loads only what it needs: loading takes most of the time of a short command. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runTrivet } from '../../test/support/programs/run-trivet.ts';

const LIST_MODULES = new URL('../../test/support/rules/list-modules.ts', import.meta.url).href;
/** With a new data folder, in which commands have run before. */
async function listLoaded(command: string, before: readonly string[] = []): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-modules-'));
  after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'modules');
  const env = { TRIVET_DATA_DIR: folder, NODE_OPTIONS: `--import ${LIST_MODULES}`, TEST_MODULES_FILE: file };
  for (const each of [...before, command]) {
    const { code, stderr } = await runTrivet(each.split(' '), { env });
    assert.equal(code, 0, stderr);
  }
  return readFileSync(file, 'utf8').split('\n');
}

const packagesOf = (urls: readonly string[]): Set<string> =>
  new Set(urls.flatMap((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []));

for (const flag of ['--version', '-v', '-V'])
  test(`trivet ${flag} loads no command`, async () => {
    assert.deepEqual(packagesOf(await listLoaded(flag)), new Set(['commander']));
  });

const createAda = 'user create --login ada --name Ada';
const createDoors = 'repo create ada/doors';

for (const [command, before] of [
  [createAda, []],
  [createDoors, [createAda]],
  ['hook list ada/doors', [createAda, createDoors]],
  ['app list', [createAda]],
  ['audit --limit 3', [createAda]],
] as const)
  test(`trivet ${command} loads nothing that sends, counts or speaks with PostgreSQL`, async () => {
    const packages = packagesOf(await listLoaded(command, before));
    assert.ok(packages.has('zod'), 'it was looked at');
    const needless = ['undici', 'pg', 'prom-client', 'nodemailer'];
    assert.deepEqual(
      needless.filter((name) => packages.has(name)),
      [],
    );
  });
