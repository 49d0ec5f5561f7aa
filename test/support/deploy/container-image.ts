/** Builds the container image with buildah on bases of Debian's packages, since no image registry may be reachable. */
import { execFile, execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createUserEnvironment } from './run-npm.ts';

/** The runtime needs these packages of a distroless image for C++, which has neither a shell nor a package manager. */
const RUNTIME_PACKAGES = 'base-files,libstdc++6,netbase,tzdata';
/** The programs that the build stage calls in addition to npm. */
const APPLETS = ['sh', 'env', 'mkdir', 'mv', 'rm', 'sed', 'ln'];
/** The revision in the labels of the image. */
export const TEST_REVISION = '0123456789abcdef';
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';

/** A folder with the images that buildah makes, apart from those of its user. */
export interface ImageStore {
  readonly folder: string;
  /** Runs buildah; resolves with what it prints. */
  readonly buildah: (...argv: readonly string[]) => Promise<string>;
}

export function openImageStore(folder: string): ImageStore {
  const options = ['--root', join(folder, 'store'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs'];
  return {
    folder,
    buildah: async (...argv) => {
      const { stdout } = await promisify(execFile)('buildah', [...options, ...argv], { maxBuffer: 2 ** 24 });
      return stdout.trim();
    },
  };
}

/** Builds `trivet-base`, which has no Node, and `trivet-build-base`, which also has npm and a shell. */
export async function buildBases(store: ImageStore): Promise<void> {
  const base = join(store.folder, 'base');
  mkdirSync(base);
  const tarball = join(base, 'base.tar');
  await promisify(execFile)('mmdebstrap', [
    '--quiet',
    '--variant=extract',
    `--include=${RUNTIME_PACKAGES}`,
    'bookworm',
    tarball,
  ]);
  await buildFrom(store, { name: 'trivet-base', folder: base, lines: ['FROM scratch', 'ADD base.tar /'] });
  const tools = join(store.folder, 'tools');
  copyBuildTools(join(tools, 'root'));
  const variables = ['HOME=/root', 'npm_config_prefer_offline=true'];
  if (existsSync(AUTHORITIES)) variables.push(`NODE_EXTRA_CA_CERTS=${AUTHORITIES}`);
  const lines = ['FROM localhost/trivet-base', 'COPY root/ /', `ENV ${variables.join(' ')}`];
  await buildFrom(store, { name: 'trivet-build-base', folder: tools, lines });
}

/** npm with the Node of this run, and the few programs that the build stage calls. */
function copyBuildTools(root: string): void {
  const npm = execFileSync('sh', ['-c', 'realpath "$(command -v npm)"'], { encoding: 'utf8' }).trim();
  for (const path of ['bin', 'usr/bin', 'usr/local/bin', 'usr/local/lib/node_modules', 'root', 'tmp'])
    mkdirSync(join(root, path), { recursive: true });
  copyFileSync(process.execPath, join(root, 'usr/local/bin/node'));
  cpSync(join(npm, '../..'), join(root, 'usr/local/lib/node_modules/npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'));
  copyFileSync('/bin/busybox', join(root, 'bin/busybox'));
  for (const applet of APPLETS) symlinkSync('busybox', join(root, 'bin', applet));
  symlinkSync('/bin/busybox', join(root, 'usr/bin/env'));
}

interface Context {
  readonly name: string;
  readonly folder: string;
  readonly lines: readonly string[];
}

async function buildFrom(store: ImageStore, { name, folder, lines }: Context): Promise<void> {
  writeFileSync(join(folder, 'Dockerfile'), `${lines.join('\n')}\n`);
  await build(store, ['--tag', name, '--file', join(folder, 'Dockerfile'), folder]);
}

/** Builds deploy/Dockerfile on these bases, with the npm settings and the npm cache of this user. */
export async function buildTrivetImage(store: ImageStore): Promise<void> {
  const cache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8', env: createUserEnvironment() });
  mkdirSync(cache.trim(), { recursive: true });
  const volumes = [
    `${cache.trim()}:/root/.npm`,
    `${homedir()}/.npmrc:/root/.npmrc:ro`,
    `${AUTHORITIES}:${AUTHORITIES}:ro`,
  ];
  const mounted = volumes.filter((volume) => existsSync(volume.split(':')[0] ?? ''));
  const variables = {
    BUILD_BASE: 'localhost/trivet-build-base',
    BASE: 'localhost/trivet-base',
    REVISION: TEST_REVISION,
  };
  const options = [
    Object.entries(variables).map(([name, value]) => `--build-arg=${name}=${value}`),
    mounted.map((volume) => `--volume=${volume}`),
  ].flat();
  await build(store, [...options, '--tag', 'trivet', '--file', 'deploy/Dockerfile', '.']);
}

/** Docker's image format, since the OCI format has no health check. */
async function build(store: ImageStore, argv: readonly string[]): Promise<void> {
  await store.buildah(
    'build',
    '--isolation',
    'chroot',
    '--format',
    'docker',
    '--layers=false',
    '--pull-never',
    ...argv,
  );
}
