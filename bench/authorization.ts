/**
 * The four calls that an authorization server lives by, beside oidc-provider with its in-memory adapter, in one run.
 * `node bench/authorization.ts [--json] [--seconds 3] [--connections 32] [--data-dir <folder>]`. Each server has a process of its own; they are
 * measured in turns, and what counts is the ratio of the CPU time that the whole server process (all its threads) spends.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { formatGet, formatPost, type HttpAnswer, type Lane, openLane } from './authorization/load.ts';
import type { Kind, Question, Ready } from './authorization/protocol.ts';

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '32' },
    'data-dir': { type: 'string', default: tmpdir() },
  },
});
const RUN_MS = Number(flags.seconds) * 1000;
const CONNECTIONS = Number(flags.connections);

interface Server {
  readonly name: string;
  readonly child: ChildProcess;
  readonly ready: Ready;
}

interface Measured {
  readonly server: string;
  readonly kind: Kind;
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
  readonly p99Ms: number;
}

async function startServer(name: string): Promise<Server> {
  const child = fork(fileURLToPath(new URL(`authorization/${name}-server.ts`, import.meta.url)), [flags['data-dir']], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [ready] = (await once(child, 'message')) as [Ready];
  return { name, child, ready };
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

/** One code serves once, so that codes come in rounds; everything else goes on until the time is over. */
const CODES_A_ROUND = 192;

async function runRound(
  server: Server,
  kind: Kind,
  round: { lanes: readonly Lane[]; untilMs: number },
): Promise<number[]> {
  const secrets = [
    ...(await ask<string[]>(server, {
      ask: 'prepare',
      kind,
      count: kind === 'exchange' ? CODES_A_ROUND : CONNECTIONS,
    })),
  ];
  const durationsMs: number[] = [];
  const call = async (lane: Lane, secret: string) => {
    const startedMs = performance.now();
    const answer = checkAnswer(server, kind, await lane.send(formatRequest(server, kind, secret)));
    durationsMs.push(performance.now() - startedMs);
    return answer;
  };
  await Promise.all(
    round.lanes.map(async (lane) => {
      let secret = secrets.pop();
      while (secret !== undefined && performance.now() < round.untilMs) {
        const { body } = await call(lane, secret);
        if (kind === 'refresh') secret = (JSON.parse(body) as { refresh_token: string }).refresh_token;
        if (kind === 'exchange') secret = secrets.pop();
      }
    }),
  );
  return durationsMs;
}

async function measure(server: Server, kind: Kind, runMs: number): Promise<Measured> {
  // Fresh ones each time: a server closes connections that idled while the others were measured.
  const lanes = await Promise.all(Array.from({ length: CONNECTIONS }, () => openLane(server.ready.port)));
  const durationsMs: number[] = [];
  let cpu = 0;
  let wallMs = 0;
  while (wallMs < runMs) {
    const [cpuBefore, startedMs] = [await ask<number>(server, { ask: 'cpu' }), performance.now()];
    durationsMs.push(...(await runRound(server, kind, { lanes, untilMs: startedMs + runMs })));
    wallMs += performance.now() - startedMs;
    cpu += (await ask<number>(server, { ask: 'cpu' })) - cpuBefore;
  }
  for (const lane of lanes) lane.close();
  const sorted = durationsMs.sort((a, b) => a - b);
  return {
    server: server.name,
    kind,
    perSecond: Math.round((sorted.length / wallMs) * 1000),
    cpuMicroseconds: Math.round(cpu / sorted.length),
    p99Ms: Math.round((sorted[Math.floor(sorted.length * 0.99)] ?? 0) * 10) / 10,
  };
}

const KINDS: readonly Kind[] = ['refresh', 'exchange', 'introspect', 'user'];

const servers = [await startServer('trivet'), await startServer('oidc-provider'), await startServer('bare')];
const results: Measured[] = [];
try {
  for (const kind of KINDS) {
    for (const server of servers) await measure(server, kind, RUN_MS / 3);
    for (const server of servers) results.push(await measure(server, kind, RUN_MS));
  }
} finally {
  for (const { child } of servers) child.kill();
}

if (flags.json) process.stdout.write(`${JSON.stringify(results)}\n`);
else {
  for (const kind of KINDS) {
    const [ours, theirs, floor] = results.filter((result) => result.kind === kind);
    if (ours === undefined || theirs === undefined || floor === undefined) continue;
    const ratio = (theirs.cpuMicroseconds / ours.cpuMicroseconds).toFixed(2);
    for (const { server, perSecond, cpuMicroseconds, p99Ms } of [ours, theirs, floor])
      process.stdout.write(
        `${kind.padEnd(11)} ${server.padEnd(14)} ${String(perSecond).padStart(6)}/s  ${String(cpuMicroseconds).padStart(5)} µs CPU  p99 ${p99Ms} ms\n`,
      );
    process.stdout.write(
      `${''.padEnd(11)} ${ratio} × less CPU, ${(ours.perSecond / theirs.perSecond).toFixed(2)} × the rate\n`,
    );
  }
}
process.exit(0);
