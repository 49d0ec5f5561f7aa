/**
 * Measures the four most frequent calls of an authorization server, in one run with oidc-provider and its in-memory adapter.
 * `node bench/authorization.ts [--json] [--seconds 3] [--connections 32] [--tokens 20000] [--commit-ms 5] [--data-dir <folder>]
 * [--only trivet] [--kinds refresh] [--profile] [--unpinned]`. Each server is a process on one core, and the client has the other
 * core; servers are measured in turns over keep-alive connections. The figure is the CPU time of the whole server process with all
 * its threads. Ours has the Node flags with which it ships.
 * Introspection and `user` use `--tokens` live tokens one after the other, more than our read cache holds. They are measured
 * once more while the server commits a new token every `--commit-ms` milliseconds, since a commit empties that cache; the processor
 * time of these commits is in the figures. oidc-provider's in-memory adapter keeps few tokens, so it gets one for each connection.
 * `--profile` also shows where the serving thread spends its time. `--expired 1000000` is another measurement: look-ups beside
 * this many expired tokens, and while they are deleted.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '../test/support/programs/start-program.ts';
import { measureExpired } from './authorization/expired.ts';
import { formatGet, formatPost, type HttpAnswer, type Lane, openLane } from './authorization/load.ts';
import type { ProfileGroups } from './authorization/profile.ts';
import type { Cpu, Kind, Question, Ready } from './authorization/protocol.ts';
import { readBenchFlags } from './support/bench-flags.ts';

const { values: flags } = readBenchFlags({
  options: {
    json: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '32' },
    tokens: { type: 'string', default: '20000' },
    'commit-ms': { type: 'string', default: '5' },
    'data-dir': { type: 'string', default: tmpdir() },
    only: { type: 'string' },
    kinds: { type: 'string', default: 'refresh,exchange,introspect,user' },
    profile: { type: 'boolean', default: false },
    unpinned: { type: 'boolean', default: false },
    expired: { type: 'string' },
  },
});
const RUN_MS = Number(flags.seconds) * 1000;
const CONNECTIONS = Number(flags.connections);
const TOKENS = Number(flags.tokens);
const COMMIT_MS = Number(flags['commit-ms']);
const CLIENT_CORE = '0';
const SERVER_CORE = '1';

interface Server {
  readonly name: string;
  readonly child: ChildProcess;
  readonly ready: Ready;
  /** Access tokens for kinds that only read, once they are prepared. */
  readonly tokens: Map<Kind, readonly string[]>;
}

interface Measured {
  readonly server: string;
  readonly kind: Kind;
  readonly commitsPerSecond: number;
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
  /** The part of the serving thread; the rest is the writer thread, the garbage collector and the compiler. */
  readonly mainThreadMicroseconds: number;
  /** Processor time of the client per request: while it is less than the server's, the server is the bottleneck. */
  readonly clientMicroseconds: number;
  readonly p99Ms: number;
  readonly profile?: ProfileGroups | undefined;
}

async function startServer(name: string): Promise<Server> {
  const script = fileURLToPath(new URL(`authorization/${name}-server.ts`, import.meta.url));
  const command = [process.execPath, ...(name === 'trivet' ? NODE_FLAGS : []), script, flags['data-dir']];
  const pinned = flags.unpinned ? command : ['taskset', '-c', SERVER_CORE, ...command];
  const [program = '', ...parameters] = pinned;
  const child = spawn(program, parameters, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const [ready] = (await once(child, 'message')) as [Ready];
  return { name, child, ready, tokens: new Map() };
}

async function ask<T>({ child }: Server, question: Question): Promise<T> {
  const answer = once(child, 'message') as Promise<[T]>;
  child.send(question);
  return (await answer)[0];
}

/** Every call is checked: a refusal is fast and would look like speed. */
function checkAnswer({ name }: Server, kind: Kind, answer: HttpAnswer): HttpAnswer {
  const isGood = answer.status === 200 && (kind !== 'introspect' || answer.body.includes('"active":true'));
  if (!isGood) throw new Error(`${name} ${kind}: ${answer.status} ${answer.body}`);
  return answer;
}

function formatRequest({ ready }: Server, kind: Kind, secret: string): string {
  const client = { client_id: ready.clientId, client_secret: ready.clientSecret };
  if (kind === 'user') return formatGet(ready.userPath, secret);
  if (kind === 'introspect') return formatPost(ready.introspectPath, { ...client, token: secret });
  if (kind === 'refresh')
    return formatPost(ready.tokenPath, { ...client, grant_type: 'refresh_token', refresh_token: secret });
  const exchange = { grant_type: 'authorization_code', code: secret, redirect_uri: 'https://client.example/callback' };
  return formatPost(ready.tokenPath, { ...client, ...exchange });
}

/** A code works once, so codes come in rounds; all other kinds run until the time is over. */
const CODES_A_ROUND = 192;
/** For these kinds the server only reads. */
const READING_KINDS: readonly Kind[] = ['introspect', 'user'];

/** Returns the secret of the next call, from the answer to the call before on its connection; undefined when there is no other. */
type TakeSecret = (former?: HttpAnswer) => string | undefined;

async function prepareSecrets(server: Server, kind: Kind): Promise<TakeSecret> {
  const prepare = (count: number) => ask<readonly string[]>(server, { ask: 'prepare', kind, count });
  if (READING_KINDS.includes(kind)) {
    const tokens = server.tokens.get(kind) ?? (await prepare(server.ready.holdsFewTokens ? CONNECTIONS : TOKENS));
    server.tokens.set(kind, tokens);
    let next = 0;
    return () => tokens[next++ % tokens.length];
  }
  const secrets = [...(await prepare(kind === 'exchange' ? CODES_A_ROUND : CONNECTIONS))];
  return (former) =>
    former === undefined || kind === 'exchange'
      ? secrets.pop()
      : (JSON.parse(former.body) as { refresh_token: string }).refresh_token;
}

async function runRound(
  server: Server,
  kind: Kind,
  round: { readonly lanes: readonly Lane[]; readonly untilMs: number; readonly takeSecret: TakeSecret },
): Promise<number[]> {
  const { takeSecret } = round;
  const durationsMs: number[] = [];
  const call = async (lane: Lane, secret: string) => {
    const startedMs = performance.now();
    const answer = checkAnswer(server, kind, await lane.send(formatRequest(server, kind, secret)));
    durationsMs.push(performance.now() - startedMs);
    return answer;
  };
  await Promise.all(
    round.lanes.map(async (lane) => {
      let secret = takeSecret();
      while (secret !== undefined && performance.now() < round.untilMs) secret = takeSecret(await call(lane, secret));
    }),
  );
  return durationsMs;
}

interface Run {
  readonly kind: Kind;
  readonly runMs: number;
  /** The interval at which the server commits meanwhile; 0 for never. */
  readonly commitMs: number;
}

async function measure(server: Server, { kind, runMs, commitMs }: Run): Promise<Measured> {
  // New connections each time: a server closes connections that were idle while the others were measured.
  const lanes = await Promise.all(Array.from({ length: CONNECTIONS }, () => openLane(server.ready.port)));
  const durationsMs: number[] = [];
  const spent = { process: 0, mainThread: 0, client: 0 };
  let wallMs = 0;
  if (flags.profile) await ask(server, { ask: 'profile' });
  await ask(server, { ask: 'commits', everyMs: commitMs });
  while (wallMs < runMs) {
    const takeSecret = await prepareSecrets(server, kind);
    const [before, clientBefore, startedMs] = [
      await ask<Cpu>(server, { ask: 'cpu' }),
      process.cpuUsage(),
      performance.now(),
    ];
    // Not push(...): a round may have more durations than a call may have arguments.
    for (const ms of await runRound(server, kind, { lanes, untilMs: startedMs + runMs, takeSecret }))
      durationsMs.push(ms);
    wallMs += performance.now() - startedMs;
    const client = process.cpuUsage(clientBefore);
    const after = await ask<Cpu>(server, { ask: 'cpu' });
    spent.client += client.user + client.system;
    spent.process += after.process - before.process;
    spent.mainThread += after.mainThread - before.mainThread;
  }
  const commits = await ask<number>(server, { ask: 'commits', everyMs: 0 });
  const profile = flags.profile ? await ask<ProfileGroups>(server, { ask: 'groups' }) : undefined;
  for (const lane of lanes) lane.close();
  const sorted = durationsMs.sort((a, b) => a - b);
  return {
    server: server.name,
    kind,
    commitsPerSecond: Math.round((commits / wallMs) * 1000),
    perSecond: Math.round((sorted.length / wallMs) * 1000),
    cpuMicroseconds: Math.round(spent.process / sorted.length),
    mainThreadMicroseconds: Math.round(spent.mainThread / sorted.length),
    clientMicroseconds: Math.round(spent.client / sorted.length),
    p99Ms: Math.round((sorted[Math.floor(sorted.length * 0.99)] ?? 0) * 10) / 10,
    profile,
  };
}

const KINDS = flags.kinds.split(',') as readonly Kind[];
const SERVERS: readonly string[] = ['trivet', 'oidc-provider', 'bare', 'hono'];

async function compare(names: readonly string[]): Promise<Measured[]> {
  if (!flags.unpinned) execFileSync('taskset', ['-a', '-p', '-c', CLIENT_CORE, String(process.pid)]);
  const servers: Server[] = [];
  for (const name of names) servers.push(await startServer(name));
  const results: Measured[] = [];
  try {
    for (const kind of KINDS) {
      for (const server of servers) await measure(server, { kind, runMs: RUN_MS / 3, commitMs: 0 });
      for (const server of servers) results.push(await measure(server, { kind, runMs: RUN_MS, commitMs: 0 }));
      if (!READING_KINDS.includes(kind)) continue;
      for (const server of servers.filter(({ name }) => name === 'trivet'))
        results.push(await measure(server, { kind, runMs: RUN_MS, commitMs: COMMIT_MS }));
    }
  } finally {
    for (const { child } of servers) child.kill();
  }
  return results;
}

function printResult({ kind, server, profile = {}, ...figures }: Measured): void {
  const { commitsPerSecond, perSecond, cpuMicroseconds, mainThreadMicroseconds, clientMicroseconds, p99Ms } = figures;
  const commits = commitsPerSecond === 0 ? '' : `  beside ${commitsPerSecond} commits/s`;
  process.stdout.write(
    `${kind.padEnd(11)} ${server.padEnd(14)} ${String(perSecond).padStart(6)}/s ${String(cpuMicroseconds).padStart(5)} µs CPU (serving thread ${mainThreadMicroseconds}, client ${clientMicroseconds})  p99 ${p99Ms} ms${commits}\n`,
  );
  for (const [group, share] of Object.entries(profile))
    process.stdout.write(`${''.padEnd(28)} ${(share * mainThreadMicroseconds).toFixed(1).padStart(6)} µs  ${group}\n`);
}

function printRatio(results: readonly Measured[], kind: Kind): void {
  const find = (name: string) => results.find(({ server, kind: measured }) => server === name && measured === kind);
  const [ours, theirs] = [find('trivet'), find('oidc-provider')];
  if (ours === undefined || theirs === undefined) return;
  const less = (theirs.cpuMicroseconds / ours.cpuMicroseconds).toFixed(2);
  process.stdout.write(
    `${''.padEnd(11)} ${less} × less CPU, ${(ours.perSecond / theirs.perSecond).toFixed(2)} × the rate\n`,
  );
}

if (flags.expired !== undefined) {
  await measureExpired(Number(flags.expired), flags['data-dir']);
  process.exit(0);
}
const results = await compare(flags.only === undefined ? SERVERS : flags.only.split(','));
if (flags.json) process.stdout.write(`${JSON.stringify(results)}\n`);
else
  for (const kind of KINDS) {
    for (const result of results) if (result.kind === kind) printResult(result);
    printRatio(results, kind);
  }
process.exit(0);
