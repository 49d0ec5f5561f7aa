/**
 * Measures `Predict` over gRPC: how many calls a second one core answers, and how long callers wait at half of that rate.
 * `node bench/predict.ts [--json] [--seconds 3] [--model none|prior|trained] [--candidates 16,64] [--rate CALLS]
 * [--reports 0.5] [--arrivals steady|poisson] [--while-refit [--samples 20000]] [--floor [--turns 15]] [--semi-space 2]
 * [--node "FLAG ..."] [--cpu-prof]`.
 *
 * The server has state as in use: 640 requests are reported before the load, and then `--reports` of the answered calls, each with
 * its dispatch, first token and end, in batches of 32 requests that it stores and learns from. Column "reports/s" is less than
 * that share where the server falls behind. The server loads in the calls change from call to call. `--reports 0` measures the calls
 * alone, after those 640. With --floor there are no reports during the load, since the servers compared with ours take none.
 *
 * Half load is half of the calls a second that the same run answered in a closed loop, 32 in flight. It takes more than half of
 * a core ("core %"): calls that arrive one by one need a read and a write each, while calls in flight together share them.
 *
 * With --while-refit, the same load runs once more while a model is trained again from samples in a store, and swapped in: the
 * server is not pinned then, and its processor time includes the training. With --floor, the open loop runs in turns with servers
 * that do less; figures are medians over the turns, and p99 also over the third of them in which the machine took least time.
 * Waiting that the other servers have too is not ours.
 *
 * "no core %" is the share of time in which the answering thread was ready to run, but other threads had its core;
 * "stolen %" is the share of all cores that the hypervisor gave to other systems.
 */
import { execFileSync } from 'node:child_process';
import { cpus, release } from 'node:os';
import { NODE_FLAGS } from '../test/support/programs/start-program.ts';
import { measureFloor } from './predict/floor.ts';
import type { LoadConnection } from './predict/grpc-load.ts';
import { ARRIVALS, type Measured, runClosedLoop, runOpenLoop } from './predict/load-patterns.ts';
import { connectLoad, measureRow, type Row } from './predict/measure.ts';
import { openReporter, PRIMED_REQUESTS, type Reporter } from './predict/reporter.ts';
import { type ServerProcess, startServer, TASKSET } from './predict/server-process.ts';
import { renderTable } from './predict/table.ts';
import { readBenchFlags } from './support/bench-flags.ts';
import { restartWithShortPauses } from './support/short-pauses.ts';

const { values: flags } = readBenchFlags({
  options: {
    json: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '3' },
    model: { type: 'string', default: 'trained' },
    candidates: { type: 'string', default: '16,64' },
    'while-refit': { type: 'boolean', default: false },
    rate: { type: 'string' },
    reports: { type: 'string', default: '0.5' },
    arrivals: { type: 'string', default: 'steady' },
    floor: { type: 'boolean', default: false },
    turns: { type: 'string', default: '15' },
    samples: { type: 'string', default: '20000' },
    'cpu-prof': { type: 'boolean', default: false },
    // Further flags of Node for the servers.
    node: { type: 'string', default: '' },
    'semi-space': { type: 'string', default: '2' },
  },
});

const IN_FLIGHT = 32;
/** A warm-up: V8 compiles code again for a new pattern of load, in threads that share the core of the server. */
const WARM_UP_MS = 2000;
/** A refit takes seconds, also since calls have priority over it. */
const REFIT_ROUNDS = 5;
const isPinned = TASKSET !== undefined && !flags['while-refit'];
const durationMs = Number(flags.seconds) * 1000;
const reportShare = Number(flags.reports);
/** A server without a predictor takes no reports. */
const learns = flags.model !== 'none';
const rate = flags.rate === undefined ? undefined : Number(flags.rate);
const arrivals = ARRIVALS.find((known) => known === flags.arrivals);
if (arrivals === undefined) throw new Error(`--arrivals must be one of ${ARRIVALS.join(', ')}`);
const openLoop = { durationMs, arrivals };
const nodeOptions = [
  ...NODE_FLAGS,
  // The last one counts.
  `--max-semi-space-size=${flags['semi-space']}`,
  ...flags.node.split(' ').filter((flag) => flag !== ''),
  ...(flags['cpu-prof'] ? ['--cpu-prof', '--cpu-prof-dir=out'] : []),
];

async function main(): Promise<void> {
  if (isPinned) execFileSync(TASKSET!, ['-a', '-p', '-c', '1', String(process.pid)]);
  const rows: Row[] = [];
  for (const candidates of flags.candidates.split(',').map(Number)) rows.push(...(await measure(candidates)));
  const machine = `${cpus()[0]?.model ?? 'unknown'}, Linux ${release()}, Node ${process.version}`;
  const report = { date: new Date().toISOString(), machine, pinned: isPinned, model: flags.model, rows };
  process.stdout.write(flags.json ? `${JSON.stringify(report)}\n` : render(report));
}

function measure(candidates: number): Promise<Row[]> {
  if (!flags.floor) return measureOurs(candidates);
  const { model } = flags;
  const turns = Number(flags.turns);
  return measureFloor({ ...openLoop, nodeOptions, model, isPinned, candidates, turns, callsPerSecond: rate });
}

async function measureOurs(candidates: number): Promise<Row[]> {
  const parameters = [
    ...nodeOptions,
    new URL('predict/server.ts', import.meta.url).pathname,
    '--model',
    flags.model,
    ...(flags['while-refit'] ? ['--while-refit', '--samples', flags.samples] : []),
  ];
  const server = await startServer(parameters, { isPinned });
  await using undo = new AsyncDisposableStack();
  undo.defer(() => server.stop());
  const connections = await connectLoad(server, candidates);
  undo.defer(() => {
    for (const connection of connections) connection.close();
  });
  const reporter = undo.use(openReporter(server.port, candidates));
  if (!learns) return await measurePatterns(connections, candidates, { server, reporter });
  await reporter.prime(PRIMED_REQUESTS);
  return await measurePatterns(reporter.follow(connections, reportShare), candidates, { server, reporter });
}

async function measurePatterns(
  connections: readonly LoadConnection[],
  candidates: number,
  { server, reporter }: { readonly server: ServerProcess; readonly reporter: Reporter },
): Promise<Row[]> {
  const measureReported = async (pattern: string, run: () => Promise<Measured>): Promise<Row> => {
    const before = reporter.stored();
    const row = await measureRow(server, { candidates, pattern }, run);
    return { ...row, reportsPerSecond: (reporter.stored() - before) / row.elapsedSeconds };
  };
  await runClosedLoop(connections, { inFlight: IN_FLIGHT, durationMs: Math.min(durationMs, 2000) });
  const closed = await measureReported(`closed loop, ${IN_FLIGHT} in flight`, () =>
    runClosedLoop(connections, { inFlight: IN_FLIGHT, durationMs }),
  );
  const callsPerSecond = rate ?? closed.callsPerSecond / 2;
  const pattern = rate === undefined ? 'open loop, half of that' : 'open loop, at that rate';
  await runOpenLoop(connections, { ...openLoop, callsPerSecond, durationMs: WARM_UP_MS });
  const open = await measureReported(pattern, () => runOpenLoop(connections, { ...openLoop, callsPerSecond }));
  if (!flags['while-refit']) return [closed, open];
  await server.ask('refit');
  const refitted = await measureReported('the same while it refits', () =>
    runOpenLoop(connections, { ...openLoop, callsPerSecond, durationMs: REFIT_ROUNDS * durationMs }),
  );
  const ratio = refitted.p99Ms / open.p99Ms;
  const { refits } = await server.ask<{ refits: number }>('count refits');
  if (refits === 0) throw new Error('No refit ended during the load, so there is nothing to compare: raise --seconds');
  process.stderr.write(`${candidates} candidates: ${refits} refits, p99 × ${ratio.toFixed(2)}\n`);
  return [closed, open, refitted];
}

function render(report: { date: string; machine: string; pinned: boolean; model: string; rows: Row[] }): string {
  const head = [
    'candidates',
    flags.floor ? 'server' : 'pattern',
    'calls/s',
    ...(flags.floor ? [] : ['reports/s']),
    'cpu µs/call',
    'core %',
    'p50 ms',
    'p99 ms',
    'max ms',
    'longest turn ms',
    'client paused %',
    'no core %',
    'stolen %',
    'busy %',
    'gc %',
    'longest gc ms',
    'failed',
    ...(flags.floor ? ['p99 ms, quiet third', 'stolen % then'] : []),
  ];
  const percent = (share: number | undefined): string => (share === undefined ? '' : (100 * share).toFixed(1));
  const lines = report.rows.map((row) => [
    String(row.candidates),
    row.pattern,
    row.callsPerSecond.toFixed(0),
    ...(flags.floor ? [] : [(row.reportsPerSecond ?? 0).toFixed(0)]),
    row.cpuMicrosPerCall.toFixed(0),
    percent(row.coreShare),
    row.p50Ms.toFixed(2),
    row.p99Ms.toFixed(2),
    row.maxMs.toFixed(2),
    row.longestTurnMs.toFixed(1),
    percent(row.pausedShare),
    percent(row.waitedShare),
    percent(row.stolenShare),
    percent(row.loopShare),
    percent(row.collectedShare),
    row.longestCollectionMs.toFixed(1),
    String(row.failed),
    ...(flags.floor ? [row.quiet?.p99Ms.toFixed(2) ?? '', percent(row.quiet?.stolenShare)] : []),
  ]);
  const what = flags.floor
    ? `model ${report.model}, ${arrivals} arrivals, medians of ${flags.turns} turns of ${flags.seconds} s`
    : `model ${report.model}`;
  const pinned = report.pinned ? 'server pinned to one core' : 'server not pinned';
  const title = `Predict over the wire, ${what}, ${pinned}`;
  return `${title}\n${report.machine}, ${report.date}\n\n${renderTable(head, lines)}\n`;
}

restartWithShortPauses();
await main();
