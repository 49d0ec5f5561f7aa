import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { runNpm } from '../support/deploy/run-npm.ts';
import { createDataDir, startProgram } from '../support/programs/start-program.ts';

/** The steps of deploy/Dockerfile, in a folder instead of an image: each npm installs what the program then runs on. */

const NPM_VERSIONS = ['10.9.4', '11.12.0'];
const dockerfile = readFileSync('deploy/Dockerfile', 'utf8').split('\n');

function findStep(pattern: RegExp): string {
  const found = dockerfile.map((line) => pattern.exec(line)?.[1]).find((step) => step !== undefined);
  assert.ok(found, `deploy/Dockerfile has no line like ${pattern}`);
  return found;
}

/** The paths that the image copies out of the repository. */
function listCopied(): string[] {
  return dockerfile
    .filter((line) => line.startsWith('COPY ') && !line.includes('--from'))
    .flatMap((line) => line.split(/\s+/).slice(1, -1));
}

function installAsImage(npmVersion: string): string {
  const app = mkdtempSync(join(tmpdir(), 'trivet-install-'));
  for (const path of listCopied()) {
    mkdirSync(dirname(join(app, path)), { recursive: true });
    cpSync(path, join(app, path), { recursive: true });
  }
  const [, ...install] = findStep(/^RUN (npm ci .*)$/).split(' ');
  runNpm({ version: npmVersion, folder: app }, install);
  return app;
}

const skip = process.env.CI !== 'true' && 'installs from the registry; runs with CI=true';

for (const npmVersion of NPM_VERSIONS)
  test(`npm ${npmVersion} takes the lock file for development`, { skip }, () => {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-install-'));
    for (const file of ['package.json', 'package-lock.json', '.npmrc']) cpSync(file, join(folder, file));
    assert.doesNotThrow(() => runNpm({ version: npmVersion, folder }, ['ci', '--dry-run']));
    rmSync(folder, { recursive: true });
  });

for (const npmVersion of NPM_VERSIONS)
  test(`npm ${npmVersion} installs what the image runs, and it answers`, { skip }, async () => {
    const app = installAsImage(npmVersion);
    try {
      await using program = await startProgram({}, createDataDir(), app);
      const ready = await fetch(`${program.httpUrl}/readyz`);
      assert.equal(ready.status, 200);
      const cli = [join(app, 'bin/trivet.js'), 'app', 'list'];
      const env = { ...process.env, TRIVET_DATA_DIR: program.dataDir };
      assert.match(execFileSync(process.execPath, cli, { cwd: app, env, encoding: 'utf8' }), /^client id/);
      assert.equal(await program.stop(), 0);
    } finally {
      rmSync(app, { recursive: true, force: true });
    }
  });
