/**
 * PostgreSQL on three nodes of one machine, as operators run it: Patroni and etcd, strict synchronous replication, and
 * where asked for HAProxy before the primary and PgBouncer before HAProxy. All from Debian's packages.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, chownSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { findFreePorts } from '../support/basics/free-port.ts';
import { type Account, findAccount, findPostgresBinaries } from '../support/store/postgres-cluster.ts';
import { describeHaproxy, describePatroni, describePgbouncer, type NodePlace } from './fleet-configuration.ts';

/** How a program reaches the primary. */
export const ROUTES = ['hosts', 'haproxy', 'pgbouncer'] as const;
export type Route = (typeof ROUTES)[number];

export interface FleetOptions {
  readonly route: Route;
  /** PostgreSQL's `wal_retrieve_retry_interval`. */
  readonly standbyRetry: string;
}

export interface PatroniFleet extends AsyncDisposable {
  readonly databaseUrl: string;
  /** The primary that Patroni names, once there is one. */
  findPrimary(): Promise<FleetNode>;
  /** Waits until this primary confirms a commit, which takes a synchronous standby. */
  waitUntilCommits(node: FleetNode): Promise<void>;
  /** Waits until every node runs and the primary has a synchronous standby. */
  waitUntilWhole(): Promise<void>;
  /** `kill -9` for Patroni, the server and its children, at once. */
  killNode(node: FleetNode): void;
  /** As an operator or a supervisor does: it joins again as a standby. */
  startNode(node: FleetNode): void;
  /** SIGSTOP for the same processes: connections stay open, and nothing answers. */
  freezeNode(node: FleetNode): void;
  thawNode(node: FleetNode): void;
}

export interface FleetNode extends NodePlace {
  readonly name: string;
}

const NODES = 3;
const ASK_EVERY_MS = 50;
const START_WITHIN_MS = 90_000;

export async function startPatroniFleet({ route, standbyRetry }: FleetOptions): Promise<PatroniFleet> {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-fleet-'));
  await using undo = new AsyncDisposableStack();
  const servers = undo.use(createServers(folder));
  const [etcdPort, etcdPeerPort, haproxyPort, pgbouncerPort, ...nodePorts] = await findFreePorts(4 + NODES * 2);
  startEtcd(servers, folder, etcdPort!, etcdPeerPort!);
  const nodes = Array.from({ length: NODES }, (_, index) => ({
    name: `node${index + 1}`,
    folder: join(folder, `node${index + 1}`),
    port: nodePorts[index * 2]!,
    restPort: nodePorts[index * 2 + 1]!,
  }));
  const startNode = (node: FleetNode): void => servers.start(node.name, 'patroni', [join(node.folder, 'patroni.json')]);
  for (const node of nodes) {
    servers.makeFolder(node.folder);
    const binaries = findPostgresBinaries() ?? '';
    servers.writeFile(
      join(node.folder, 'patroni.json'),
      describePatroni({ node, etcdPort: etcdPort!, binaries, standbyRetry }),
    );
    startNode(node);
  }
  await waitFor('every node to run', () => isWhole(nodes));
  await createDatabase(await findPrimaryOf(nodes));
  if (route !== 'hosts') {
    servers.writeFile(join(folder, 'haproxy.cfg'), describeHaproxy(haproxyPort!, nodes));
    servers.start('haproxy', 'haproxy', ['-db', '-f', join(folder, 'haproxy.cfg')]);
  }
  if (route === 'pgbouncer') {
    servers.writeFile(join(folder, 'pgbouncer.ini'), describePgbouncer(pgbouncerPort!, haproxyPort!));
    servers.start('pgbouncer', 'pgbouncer', [join(folder, 'pgbouncer.ini')]);
  }
  const databaseUrl = {
    hosts: `postgres://trivet@${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}/trivet`,
    haproxy: `postgres://trivet@127.0.0.1:${haproxyPort}/trivet`,
    pgbouncer: `postgres://trivet@127.0.0.1:${pgbouncerPort}/trivet?prepared_statements=false`,
  }[route];
  await waitFor('the route to the primary', () => canQuery(databaseUrl.replace(/127[^/]+,/, '')));
  const owned = undo.move();
  return {
    databaseUrl,
    findPrimary: () => findPrimaryOf(nodes),
    waitUntilCommits: (node) => waitFor('the new primary to confirm a commit', () => canCommit(node)),
    waitUntilWhole: () => waitFor('every node to run', () => isWhole(nodes)),
    killNode: (node) => servers.signal(node, 'SIGKILL'),
    startNode,
    freezeNode: (node) => servers.signal(node, 'SIGSTOP'),
    thawNode: (node) => servers.signal(node, 'SIGCONT'),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

interface Servers extends AsyncDisposable {
  makeFolder(path: string): void;
  writeFile(path: string, text: string): void;
  start(name: string, program: string, args: readonly string[]): void;
  signal(node: FleetNode, signal: NodeJS.Signals): void;
}

// The shell outlives us: when its input ends, because we ended in whatever way, it ends the servers and removes the folder.
const KEEPER = `
  read -r word
  for file in "$1"/*.pid "$1"/*/data/postmaster.pid; do
    [ -f "$file" ] && kill -9 $(head -n 1 "$file")
  done
  for try in 1 2 3 4 5 6 7 8 9 10; do cd / && rm -rf "$1" && exit; sleep 0.3; done
`;

/** PostgreSQL and Patroni refuse to run as root. */
function createServers(folder: string): Servers {
  const account = findAccount();
  own(folder, account);
  const keeper = spawn('/bin/sh', ['-c', KEEPER, 'keeper', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    detached: true,
    ...account,
  });
  const children = new Map<string, ChildProcess>();
  const pidFile = (name: string): string => join(folder, `${name}.pid`);
  return {
    makeFolder: (path) => {
      mkdirSync(path, { mode: 0o700 });
      own(path, account);
    },
    writeFile: (path, text) => {
      writeFileSync(path, text);
      own(path, account);
    },
    start: (name, program, args) => {
      const log = join(folder, `${name}.log`);
      const child = spawn('/bin/sh', ['-c', 'log=$1; shift; exec "$@" >>"$log" 2>&1', 'sh', log, program, ...args], {
        stdio: 'ignore',
        cwd: folder,
        env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/usr/bin`, HOME: folder },
        ...account,
      });
      children.set(name, child);
      writeFileSync(pidFile(name), String(child.pid));
      child.once('exit', () => rmSync(pidFile(name), { force: true }));
    },
    signal: (node, signal) => {
      const server = readFileSync(join(node.folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0]!;
      const backends = readFileSync(`/proc/${server}/task/${server}/children`, 'utf8').trim().split(' ');
      // Patroni first, so that it does not start the server again; then the server, so that it starts no more children.
      for (const pid of [children.get(node.name)?.pid, Number(server), ...backends.map(Number)]) signalOne(pid, signal);
      // Its number may soon be that of another process.
      if (signal === 'SIGKILL') rmSync(join(node.folder, 'data', 'postmaster.pid'), { force: true });
    },
    [Symbol.asyncDispose]: async () => {
      const ended = new Promise((resolve) => keeper.once('exit', resolve));
      keeper.stdin.end('stop\n');
      await ended;
    },
  };
}

function own(path: string, account: Account | undefined): void {
  if (account !== undefined) chownSync(path, account.uid, account.gid);
  chmodSync(path, path.endsWith('.json') ? 0o600 : 0o700);
}

function signalOne(pid: number | undefined, signal: NodeJS.Signals): void {
  if (!pid) return;
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function startEtcd(servers: Servers, folder: string, clientPort: number, peerPort: number): void {
  const clientUrl = `http://127.0.0.1:${clientPort}`;
  const peerUrl = `http://127.0.0.1:${peerPort}`;
  const options = [
    ['--data-dir', join(folder, 'etcd'), '--name', 'etcd', '--initial-cluster', `etcd=${peerUrl}`],
    ['--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
    ['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
    // Patroni holds its lock by etcd: a busy test machine must not make it wait for the disk. Nothing here kills etcd.
    ['--unsafe-no-fsync'],
  ];
  servers.start('etcd', 'etcd', options.flat());
}

async function answers(node: FleetNode, path: string): Promise<boolean> {
  const signal = AbortSignal.timeout(1000);
  return await fetch(`http://127.0.0.1:${node.restPort}${path}`, { signal }).then(
    ({ status }) => status === 200,
    () => false,
  );
}

async function findPrimaryOf(nodes: readonly FleetNode[]): Promise<FleetNode> {
  const asked = await Promise.all(nodes.map((node) => answers(node, '/primary')));
  const primary = nodes[asked.indexOf(true)];
  if (primary !== undefined) return primary;
  // Patroni tells it only when asked.
  await sleep(ASK_EVERY_MS);
  return findPrimaryOf(nodes);
}

interface Member {
  readonly role: string;
  readonly state: string;
  readonly lag?: number | string;
}

/** As the primary sees them. A node that starts calls itself a replica before it is one. */
async function isWhole(nodes: readonly FleetNode[]): Promise<boolean> {
  const members = await fetch(`http://127.0.0.1:${nodes[0]!.restPort}/cluster`, { signal: AbortSignal.timeout(1000) })
    .then((response) => response.json() as Promise<{ members: Member[] }>)
    .then(
      (cluster) => cluster.members,
      () => [],
    );
  const ready = members.filter(({ state, lag }) => ['running', 'streaming'].includes(state) && lag !== 'unknown');
  return ready.length === NODES && ['leader', 'sync_standby'].every((role) => ready.some((each) => each.role === role));
}

async function canQuery(databaseUrl: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 2000 });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch (error) {
    return (error as { code?: string }).code === '57P03';
  } finally {
    await client.end().catch(() => {});
  }
}

async function canCommit({ port }: FleetNode): Promise<boolean> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' });
  client.on('error', () => {});
  try {
    await client.connect();
    // Something has to be written, or the commit waits for no standby.
    await client.query("SELECT pg_logical_emit_message(true, 'probe', '')");
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

async function createDatabase({ port }: FleetNode): Promise<void> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' });
  await client.connect();
  await client.query('CREATE ROLE trivet LOGIN');
  // Behind PgBouncer the parameters of a connection are the server's: the same limits as the program asks for.
  await client.query(`ALTER ROLE trivet SET statement_timeout = '60s'`);
  await client.query(`ALTER ROLE trivet SET idle_in_transaction_session_timeout = '10s'`);
  await client.query(`CREATE DATABASE trivet OWNER trivet ENCODING 'UTF8' TEMPLATE template0`);
  await client.end();
}

async function waitFor(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + START_WITHIN_MS;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`Gave up waiting for ${what}: ${showLogs()}`);
    // Patroni tells it only when asked.
    await sleep(ASK_EVERY_MS);
  }
}

function showLogs(): string {
  const logs = globSync(join(tmpdir(), 'trivet-fleet-*', '*.log'));
  return logs.map((path) => `\n--- ${path}\n${readFileSync(path, 'utf8').split('\n').slice(-12).join('\n')}`).join('');
}
