/**
 * Runs a container without a container engine: the image's files as a read-only root, separate namespaces for mounts and processes,
 * an arbitrary user without capabilities, and the command of the image as process 1. It shares the network of this machine.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** An image declares with these fields how to start it. */
export interface ImageConfig {
  readonly User: string;
  readonly WorkingDir: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly Labels: Readonly<Record<string, string>>;
  readonly Healthcheck: { readonly Test: readonly [kind: string, ...argv: string[]] };
}

interface ContainerOptions {
  /** The folder with the files of the image. */
  readonly root: string;
  readonly config: ImageConfig;
  /** `uid:gid`. */
  readonly user: string;
  readonly environment: Readonly<Record<string, string>>;
}

export interface Container {
  readonly output: () => string;
  /** The exit code of the program. */
  readonly exited: Promise<number | null>;
  /** Runs a command beside the program, as `docker exec` does; rejects with its output when it fails. */
  execute(argv: readonly string[]): Promise<string>;
  signal(name: NodeJS.Signals): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Container engines set the same value. */
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Only the volumes for data and temporary files are writable; the data volume has the permissions of its folder in the image. */
const START = `set -eu
mount --bind "$ROOT" "$ROOT"
mount --options remount,bind,ro "$ROOT"
mount --types proc proc "$ROOT/proc"
mount --rbind --make-rslave /dev "$ROOT/dev"
mount --types tmpfs --options mode=1777 tmpfs "$ROOT/tmp"
mount --types tmpfs --options "$(stat --format=mode=%a,uid=%u,gid=%g "$ROOT/data")" tmpfs "$ROOT/data"
exec env --unset=ROOT unshare --root="$ROOT" "$@"`;

/** Resolves once the program is ready; rejects with its output when it ends before. */
export async function startContainer({ root, config, user, environment }: ContainerOptions): Promise<Container> {
  for (const folder of ['proc', 'dev', 'tmp']) mkdirSync(join(root, folder), { recursive: true });
  const variables = Object.fromEntries(config.Env.map((variable) => variable.split(/=(.*)/s)));
  const env = { PATH, ...variables, ...environment };
  const [uid, gid] = user.split(':');
  const asUser = [`--setuid=${uid}`, `--setgid=${gid}`];
  const isolate = ['--no-new-privs', 'unshare', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', START, 'sh'];
  const child = spawn(
    'setpriv',
    [...isolate, ...asUser, `--wd=${config.WorkingDir}`, ...config.Entrypoint, ...config.Cmd],
    {
      env: { ...env, ROOT: root },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const output = collectOutput(child);
  const exited = once(child, 'close').then(([code]) => code as number | null);
  await waitUntilReady(child, output, exited);
  const pid = findFirstProcess(child);
  const enter = [`--target=${pid}`, '--mount', '--pid', '--root', ...asUser, `--wdns=${config.WorkingDir}`];
  return {
    output,
    exited,
    execute: async (argv) => (await promisify(execFile)('nsenter', [...enter, ...argv], { env })).stdout,
    signal: (name) => void process.kill(pid, name),
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode === null) process.kill(pid, 'SIGKILL');
      await exited;
    },
  };
}

function collectOutput(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  return () => text;
}

async function waitUntilReady(child: ChildProcess, output: () => string, exited: Promise<unknown>): Promise<void> {
  const ended = exited.then(() => {
    throw new Error(`The container ended before it was ready:\n${output()}`);
  });
  const ready = new Promise<void>((resolve) => {
    child.stdout?.on('data', () => {
      if (/^Trivet is ready\n/m.test(output())) resolve();
    });
  });
  await Promise.race([ready, ended]);
}

/** The pid on this machine of the container's process 1: the child of the program that created the namespaces. */
function findFirstProcess({ pid }: ChildProcess): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
}
