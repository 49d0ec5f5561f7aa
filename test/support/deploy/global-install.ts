/** Installs the packed package globally, with the Node and npm of a user, without any install script. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { createUserEnvironment, runNpm } from './run-npm.ts';

const platform = `${process.platform}-${process.arch}`;

/** For `{ skip }`: the reason not to run here, or false. */
export const globalInstallSkip =
  (process.env.CI !== 'true' && 'installs from the registry; runs with CI=true') ||
  (platform !== 'linux-x64' && 'takes the other Nodes from packages for Linux on x64');

/** The folder for the installations of one test file, and its content. */
export function openInstallations() {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-global-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return {
    folder,
    tarball: globalInstallSkip === false ? pack(folder, 'trivet') : '',
    findNodeFolder: (version: string) => findNodeFolder(folder, version),
  };
}

/** Returns the only package that `npm pack` creates from `subject`, in a new folder. */
function pack(folder: string, name: string, subject: readonly string[] = []): string {
  const target = join(folder, name);
  mkdirSync(target);
  const env = createUserEnvironment();
  execFileSync('npm', ['pack', '--silent', ...subject, '--pack-destination', target], { env });
  const [tarball] = readdirSync(target);
  assert.ok(tarball);
  return join(target, tarball);
}

/** The folder of the `node` of this version, which it puts into `folder` unless this run has it. */
export function findNodeFolder(folder: string, version: string): string {
  if (process.versions.node.startsWith(`${version}.`)) return dirname(process.execPath);
  const at = join(folder, `node-${version}`, 'package', 'bin');
  if (existsSync(at)) return at;
  const packed = pack(folder, `node-${version}`, [`node-${platform}@${version}`]);
  execFileSync('tar', ['-xzf', packed, '-C', dirname(packed), 'package/bin/node']);
  return at;
}

/** npm 12 runs no install script of a dependency unless its user allows it. */
export function testGlobalInstall(
  { folder, tarball, findNodeFolder }: ReturnType<typeof openInstallations>,
  { node, npm }: { readonly node: string; readonly npm: string },
): void {
  const title = `the package installs globally with npm ${npm} on Node ${node}, and runs the demo`;
  test(title, { skip: globalInstallSkip }, async () => {
    const nodeFolder = findNodeFolder(node);
    const prefix = join(folder, `prefix-${node}`);
    const options = ['--global', '--prefix', prefix, '--prefer-offline', '--ignore-scripts'];
    runNpm({ version: npm, folder, nodeFolder }, ['install', ...options, tarball]);
    const env = createUserEnvironment(nodeFolder);
    const { stdout } = await promisify(execFile)(join(prefix, 'bin', 'trivet'), ['demo', '--exit'], { env });
    assert.match(stdout, /demo-8b@1/);
    rmSync(prefix, { recursive: true });
  });
}
