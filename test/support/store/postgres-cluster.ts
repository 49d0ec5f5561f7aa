import { execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, globSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { makeDataFolder } from '../basics/data-folder.ts';

/** A PostgreSQL server of our own in a temporary folder, reached by a unix socket alone. */
export interface PostgresCluster {
  /** The folder of the socket; also in the URLs. */
  readonly socketDir: string;
  /** Kills the server and its children with SIGKILL; the folder stays, for `start` or `stop`. */
  kill(): Promise<void>;
  /** Starts it again after `kill`, with its crash recovery. */
  start(): Promise<void>;
  /** Suspends all its processes (SIGSTOP): connections stay open, and nothing answers. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

export interface ClusterOptions {
  /** With fsync; for tests that kill the server. */
  readonly isDurable?: boolean;
  /** Flags like `-cwork_mem=8MB`, over those of the tests. */
  readonly settings?: readonly string[];
}

/** The folder with `initdb` and `postgres`, or nothing. */
export function findPostgresBinaries(): string | undefined {
  const versioned = globSync('/usr/lib/postgresql/*/bin').sort(byVersion).reverse();
  const places = [...versioned, ...askPgConfig(), ...(process.env.PATH ?? '').split(':')];
  return places.find((place) => existsSync(join(place, 'initdb')) && existsSync(join(place, 'postgres')));
}

function byVersion(one: string, other: string): number {
  return Number(one.split('/')[4]) - Number(other.split('/')[4]);
}

function askPgConfig(): string[] {
  try {
    return [execFileSync('pg_config', ['--bindir'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()];
  } catch {
    return [];
  }
}

export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** The server refuses to run as root. */
export function findAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  return { uid: askId('-u') ?? 65534, gid: askId('-g') ?? 65534 };
}

function askId(flag: string): number | undefined {
  try {
    return Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  } catch {
    return undefined;
  }
}

// The shell outlives this process for a moment: when its input ends, because this process ended in any way, it ends the server and
// removes the folder. So no server is left, not even after a kill -9 of the tests.
const KEEPER = `
  binaries=$1 folder=$2; shift 2
  "$binaries/postgres" -D "$folder/data" "$@" >>"$folder/log" 2>&1 </dev/null & server=$!
  read -r word
  if [ "$word" = kill ]; then
    kill -STOP $server
    kill -9 $(cat /proc/$server/task/$server/children) $server
    wait $server
    exit 0
  fi
  kill -CONT $(cat /proc/$server/task/$server/children) $server
  kill -QUIT $server; wait $server; cd /; rm -rf "$folder"
`;

export async function startPostgresCluster(options: ClusterOptions = {}): Promise<PostgresCluster> {
  const binaries = findPostgresBinaries();
  if (binaries === undefined) throw new Error('No PostgreSQL server is installed');
  const account = findAccount();
  const folder = makeDataFolder('trivet-pg-');
  if (account !== undefined) chownSync(folder, account.uid, account.gid);
  const prepared = process.env.TRIVET_TEST_POSTGRES_DATA;
  if (prepared === undefined) createData(binaries, folder, account);
  else execFileSync('cp', ['-a', join(prepared, 'data'), folder], { stdio: 'pipe', cwd: dirname(folder), ...account });

  const flags = options.isDurable ? ['-cfsync=on', '-cfull_page_writes=on'] : ['-cfsync=off', '-cfull_page_writes=off'];
  const settings = [
    ...flags,
    '-clisten_addresses=',
    `-cunix_socket_directories=${folder}`,
    '-cmax_connections=300',
    '-cshared_buffers=64MB',
    '-cmax_wal_size=256MB',
    ...(options.settings ?? []),
  ];
  const launch = (): Keeper => startKeeper([binaries, folder, ...settings], account);
  let keeper = launch();
  await waitUntilReady(folder);

  return {
    socketDir: folder,
    kill: () => keeper.end('kill'),
    start: async () => {
      rmSync(join(folder, 'data', 'postmaster.pid'), { force: true });
      keeper = launch();
      await waitUntilReady(folder);
    },
    freeze: () => signalServer(folder, 'SIGSTOP'),
    thaw: () => signalServer(folder, 'SIGCONT'),
    stop: () => keeper.end('stop'),
  };
}

/** Signals the server first, so that it starts no more children. */
function signalServer(folder: string, signal: 'SIGSTOP' | 'SIGCONT'): void {
  const [server = ''] = readFileSync(join(folder, 'data', 'postmaster.pid'), 'utf8').split('\n');
  process.kill(Number(server), signal);
  const children = readFileSync(`/proc/${server}/task/${server}/children`, 'utf8').trim();
  for (const child of children.split(' ')) signalChild(Number(child), signal);
}

/** A process may have ended since it was listed: one whose client has left ends by itself once the server continues. */
function signalChild(child: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
  try {
    process.kill(child, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The data of a new server, in a folder that the caller removes: with `TRIVET_TEST_POSTGRES_DATA` each server of a run starts from a copy. */
export function preparePostgresData(binaries: string): string {
  const account = findAccount();
  const folder = makeDataFolder('trivet-pg-data-');
  if (account !== undefined) chownSync(folder, account.uid, account.gid);
  createData(binaries, folder, account);
  return folder;
}

function createData(binaries: string, folder: string, account: Account | undefined): void {
  const args = ['-D', join(folder, 'data'), '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'];
  // A locale that does not sort by bytes where there is one: no statement may depend on it.
  const sorting = ['--locale=C.UTF-8', '--locale-provider=icu', '--icu-locale=en'];
  const run = (more: string[]) =>
    execFileSync(join(binaries, 'initdb'), [...args, ...more], { stdio: 'pipe', cwd: dirname(folder), ...account });
  try {
    run(sorting);
  } catch {
    rmSync(join(folder, 'data'), { recursive: true, force: true });
    run(['--locale=C']);
  }
}

interface Keeper {
  end(word: 'stop' | 'kill'): Promise<void>;
}

function startKeeper(args: readonly string[], account: Account | undefined): Keeper {
  const shell = spawn('/bin/sh', ['-c', KEEPER, 'keeper', ...args], {
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    detached: true,
    ...account,
  });
  shell.unref();
  (shell.stdin as unknown as { unref(): void }).unref();
  const ended = new Promise<void>((resolve) => shell.once('exit', () => resolve()));
  return {
    end: async (word) => {
      shell.ref();
      shell.stdin.end(`${word}\n`);
      await ended;
    },
  };
}

const MAX_TRIES = 600;

async function waitUntilReady(folder: string): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    const client = new pg.Client({ host: folder, user: 'postgres', database: 'postgres' });
    client.on('error', () => {});
    try {
      await client.connect();
      return await client.end();
    } catch (error) {
      if (tries === MAX_TRIES) throw error;
      // A starting server sends clients no event.
      await sleep(50);
    }
  }
}

/** Creates an unused schema and returns a URL that selects it. */
export async function createTestDatabase(socketDir: string, name: string): Promise<string> {
  const client = new pg.Client({ host: socketDir, user: 'postgres', database: 'postgres' });
  await client.connect();
  await client.query(`CREATE SCHEMA ${name}`);
  await client.end();
  const options = encodeURIComponent(`-c search_path=${name}`);
  return `postgres://postgres@/postgres?host=${encodeURIComponent(socketDir)}&options=${options}`;
}
