/**
 * `Predict` over the wire: how many calls a second one core answers, and how long callers wait at half of that.
 * `node bench/predict.ts [--json] [--seconds 3] [--model none|prior|trained] [--candidates 16,64]
 * [--rate CALLS] [--while-refit [--samples 20000]] [--semi-space 8] [--cpu-prof]`. With --while-refit, the same load once more while a model is learned
 * again from samples in a store, and swapped in: the server is not pinned then, and its processor time is not that of the
 * calls alone. "no core %" is the share of the time in which the thread that answers was ready to run, and others had its core.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { parseArgs } from 'node:util';
import protobuf from 'protobufjs';
import { type LoadConnection, openConnection } from './predict/grpc-load.ts';
import { type Measured, runClosedLoop, runOpenLoop } from './predict/load-patterns.ts';

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '3' },
    model: { type: 'string', default: 'trained' },
    candidates: { type: 'string', default: '16,64' },
    'while-refit': { type: 'boolean', default: false },
    rate: { type: 'string' },
    samples: { type: 'string', default: '20000' },
    'cpu-prof': { type: 'boolean', default: false },
    // As in package.json.
    'semi-space': { type: 'string', default: '8' },
  },
});

const CONNECTIONS = 4;
const IN_FLIGHT = 32;
/** A refit takes seconds, the more so as it lets the calls go first. */
const REFIT_ROUNDS = 5;
const TASKSET = '/usr/bin/taskset';
const OPTIONS = [`--max-semi-space-size=${flags['semi-space']}`];
const isPinned = existsSync(TASKSET) && !flags['while-refit'];
const durationMs = Number(flags.seconds) * 1000;

interface Row extends Measured {
  readonly candidates: number;
  readonly pattern: string;
  /** Processor time of the server: unlike the rate, hardly disturbed by what else runs on the machine. */
  readonly cpuMicrosPerCall: number;
  /** The longest that the thread which answers was busy at a stretch, in its processor time. */
  readonly longestTurnMs: number;
  /** Share of the time in which that thread was ready to run and other threads had its core. */
  readonly waitedShare: number;
  /** Share of the time in which it waited for the collector. */
  readonly collectedShare: number;
}

interface Readings {
  readonly cpuMicros: number;
  readonly refits: number;
  readonly longestTurnMs: number;
  readonly waitedMs: number;
  readonly collectedMs: number;
}

interface ServerProcess {
  readonly port: number;
  /** Processor time spent and refits done so far, and the longest turn since the last question. */
  read(): Promise<Readings>;
  /** Begins to learn again and again. */
  startRefits(): Promise<Readings>;
  stop(): Promise<void>;
}

async function main(): Promise<void> {
  if (isPinned) execFileSync(TASKSET, ['-a', '-p', '-c', '1', String(process.pid)]);
  const rows: Row[] = [];
  for (const candidates of flags.candidates.split(',').map(Number)) rows.push(...(await measure(candidates)));
  const machine = `${cpus()[0]?.model ?? 'unknown'}, Linux ${release()}, Node ${process.version}`;
  const report = { date: new Date().toISOString(), machine, pinned: isPinned, model: flags.model, rows };
  process.stdout.write(flags.json ? `${JSON.stringify(report)}\n` : renderTable(report));
}

async function measure(candidates: number): Promise<Row[]> {
  const server = await startServer();
  const target = {
    host: '127.0.0.1',
    path: '/prediction.v1.PredictionService/Predict',
    message: createRequest(candidates),
  };
  const connections = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => openConnection({ ...target, port: server.port })),
  );
  try {
    return await measurePatterns(connections, candidates, server);
  } finally {
    for (const connection of connections) connection.close();
    await server.stop();
  }
}

async function measurePatterns(
  connections: readonly LoadConnection[],
  candidates: number,
  server: ServerProcess,
): Promise<Row[]> {
  const withCpu = async (pattern: string, run: () => Promise<Measured>): Promise<Row> => {
    const before = await server.read();
    const measured = await run();
    const calls = measured.callsPerSecond * measured.elapsedSeconds;
    const after = await server.read();
    const elapsedMs = 1000 * measured.elapsedSeconds;
    return {
      candidates,
      pattern,
      ...measured,
      cpuMicrosPerCall: (after.cpuMicros - before.cpuMicros) / calls,
      longestTurnMs: after.longestTurnMs,
      waitedShare: (after.waitedMs - before.waitedMs) / elapsedMs,
      collectedShare: (after.collectedMs - before.collectedMs) / elapsedMs,
    };
  };
  await runClosedLoop(connections, { inFlight: IN_FLIGHT, durationMs: Math.min(durationMs, 2000) });
  const closed = await withCpu(`closed loop, ${IN_FLIGHT} in flight`, () =>
    runClosedLoop(connections, { inFlight: IN_FLIGHT, durationMs }),
  );
  const callsPerSecond = flags.rate === undefined ? closed.callsPerSecond / 2 : Number(flags.rate);
  const open = await withCpu(flags.rate === undefined ? 'open loop, half of that' : 'open loop, at that rate', () =>
    runOpenLoop(connections, { callsPerSecond, durationMs }),
  );
  if (!flags['while-refit']) return [closed, open];
  await server.startRefits();
  const refitted = await withCpu('the same while it refits', () =>
    runOpenLoop(connections, { callsPerSecond, durationMs: REFIT_ROUNDS * durationMs }),
  );
  const ratio = refitted.p99Ms / open.p99Ms;
  process.stderr.write(`${candidates} candidates: ${(await server.read()).refits} refits, p99 × ${ratio.toFixed(2)}\n`);
  return [closed, open, refitted];
}

async function startServer(): Promise<ServerProcess> {
  const node = [
    ...OPTIONS,
    ...(flags['cpu-prof'] ? ['--cpu-prof', '--cpu-prof-dir=out'] : []),
    new URL('predict/server.ts', import.meta.url).pathname,
    '--model',
    flags.model,
    ...(flags['while-refit'] ? ['--while-refit', '--samples', flags.samples] : []),
  ];
  const [command, ...parameters] = isPinned ? [TASKSET, '-c', '0', process.execPath] : [process.execPath];
  const child = spawn(command!, [...parameters, ...node], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const { port } = await nextMessage<{ port: number }>(child);
  return {
    port,
    read: () => ask(child, 'read'),
    startRefits: () => ask(child, 'refit'),
    stop: () => end(child),
  };
}

function ask(child: ChildProcess, question: 'read' | 'refit'): Promise<Readings> {
  child.send(question);
  return nextMessage<Readings>(child);
}

function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(new Error('The server ended'));
    child.once('close', fail);
    child.once('message', (message) => {
      child.off('close', fail);
      resolve(message as T);
    });
  });
}

function end(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('close', () => resolve());
    child.kill('SIGTERM');
  });
}

function createRequest(candidates: number): Uint8Array {
  const type = protobuf.loadSync('proto/prediction/v1/prediction.proto').lookupType('prediction.v1.PredictRequest');
  const inputs = Array.from({ length: candidates }, (_, index) => ({
    inputId: index + 1,
    podType: 'decode',
    inputTokenLength: 1000 + index * 37,
    prefixCacheScore: (index % 10) / 10,
    numRequestWaiting: index % 5,
    numRequestRunning: 3 + (index % 20),
    kvCacheUsage: 0.3 + (index % 60) / 100,
    inflightTokens: 5000 + index * 211,
    hbmUtilization: 0.7,
    aiCoreUtilization: 0.5,
    bandwidthUtilization: 0.4,
    serverIp: `10.12.${index % 16}.${100 + (index % 100)}`,
  }));
  return type.encode(type.fromObject({ targetModel: 'qwen3-32b', inputs })).finish();
}

function renderTable(report: { date: string; machine: string; pinned: boolean; model: string; rows: Row[] }): string {
  const head = [
    'candidates',
    'pattern',
    'calls/s',
    'cpu µs/call',
    'p50 ms',
    'p99 ms',
    'max ms',
    'longest turn ms',
    'client paused %',
    'no core %',
    'gc %',
    'failed',
  ];
  const lines = report.rows.map((row) => [
    String(row.candidates),
    row.pattern,
    row.callsPerSecond.toFixed(0),
    row.cpuMicrosPerCall.toFixed(0),
    row.p50Ms.toFixed(2),
    row.p99Ms.toFixed(2),
    row.maxMs.toFixed(2),
    row.longestTurnMs.toFixed(1),
    row.pausedShare === undefined ? '' : (100 * row.pausedShare).toFixed(1),
    (100 * row.waitedShare).toFixed(1),
    (100 * row.collectedShare).toFixed(1),
    String(row.failed),
  ]);
  const widths = head.map((title, index) => Math.max(title.length, ...lines.map((line) => line[index]!.length)));
  const table = [head, ...lines].map((line) => line.map((cell, index) => cell.padEnd(widths[index]!)).join('  '));
  const pinned = report.pinned ? 'server pinned to one core' : 'server not pinned';
  return `Predict over the wire, model ${report.model}, ${pinned}\n${report.machine}, ${report.date}\n\n${table.join('\n')}\n`;
}

await main();
