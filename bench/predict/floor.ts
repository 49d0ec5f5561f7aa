/**
 * Shows which part of the waiting is ours, after some reports and without further ones: it also measures servers that do less, at
 * the same rate and with the same bytes. All take turns, so that noise of the machine affects all alike. The others are suspended
 * meanwhile, since V8 collects the whole heap of a process that has become idle, and all share one core.
 */
import type { LoadConnection } from './grpc-load.ts';
import { type Arrivals, runClosedLoop, runOpenLoop } from './load-patterns.ts';
import { connectLoad, measureRow, type Row } from './measure.ts';
import { openReporter, PRIMED_REQUESTS } from './reporter.ts';
import { type ServerProcess, startServer } from './server-process.ts';

const WARM_UP = { inFlight: 32, durationMs: 1500 };
/** At the beginning of each turn, before anything is measured. */
const TURN_WARM_UP_MS = 500;

export interface FloorOptions {
  /** Node flags for every server. */
  readonly nodeOptions: readonly string[];
  readonly model: string;
  readonly isPinned: boolean;
  readonly candidates: number;
  readonly turns: number;
  readonly durationMs: number;
  /** By default half of the highest rate of our server. */
  readonly callsPerSecond: number | undefined;
  readonly arrivals: Arrivals;
}

interface Peer {
  readonly name: string;
  readonly server: ServerProcess;
  readonly connections: readonly LoadConnection[];
}

/** Returns one row for our server in a closed loop, then one per server: the median of each figure over the turns. */
export async function measureFloor(options: FloorOptions): Promise<Row[]> {
  const { candidates, durationMs, arrivals } = options;
  const peers = await startPeers(options);
  try {
    const [ours, work, transport] = peers;
    const capacity = await warmUp(ours!, candidates);
    const ownMicros = capacity.cpuMicrosPerCall - (await warmUp(transport!, candidates)).cpuMicrosPerCall;
    await work!.server.ask({ workMicros: ownMicros });
    for (const peer of [work!, peers[3]!]) await warmUp(peer, candidates);
    for (const { server } of peers) server.suspend();
    const callsPerSecond = options.callsPerSecond ?? capacity.callsPerSecond / 2;
    const turns: Row[][] = [];
    for (let turn = 0; turn < options.turns; turn++) turns.push(await runTurn(turn));
    const rows = turns.flat();
    return [capacity, ...peers.map(({ name }) => summarize(rows.filter(({ pattern }) => pattern === name)))];

    async function runTurn(turn: number): Promise<Row[]> {
      const rows: Row[] = [];
      for (const { name, server, connections } of turn % 2 === 0 ? peers : peers.toReversed()) {
        server.resume();
        await runOpenLoop(connections, { callsPerSecond, durationMs: TURN_WARM_UP_MS, arrivals });
        rows.push(
          await measureRow(server, { candidates, pattern: name }, () =>
            runOpenLoop(connections, { callsPerSecond, durationMs, arrivals }),
          ),
        );
        server.suspend();
      }
      return rows;
    }
  } finally {
    for (const { server, connections } of peers) {
      server.resume();
      for (const connection of connections) connection.close();
      await server.stop();
    }
  }
}

/** Our server first, then servers that do less and less. */
async function startPeers({ nodeOptions, model, isPinned, candidates }: FloorOptions): Promise<Peer[]> {
  const programs: [name: string, program: string, ...parameters: string[]][] = [
    [`ours, model ${model}`, 'server.ts', '--model', model],
    ['our transport, fixed answer, as much work', 'fixed-server.ts', '--candidates', String(candidates)],
    ['our transport, fixed answer', 'fixed-server.ts', '--candidates', String(candidates)],
    ['bare socket, fixed answer', 'bare-server.ts', '--candidates', String(candidates)],
  ];
  const peers: Peer[] = [];
  for (const [name, program, ...parameters] of programs) {
    const path = new URL(program, import.meta.url).pathname;
    const server = await startServer([...nodeOptions, path, ...parameters], { isPinned });
    peers.push({ name, server, connections: await connectLoad(server, candidates) });
  }
  if (model !== 'none') {
    await using reporter = openReporter(peers[0]!.server.port, candidates);
    await reporter.prime(PRIMED_REQUESTS);
  }
  return peers;
}

async function warmUp({ name, server, connections }: Peer, candidates: number): Promise<Row> {
  await runClosedLoop(connections, WARM_UP);
  const pattern = `${name}, closed loop`;
  return measureRow(server, { candidates, pattern }, () => runClosedLoop(connections, WARM_UP));
}

/** Noise of the machine only delays calls, so the turns in which it took least time say most about a server. */
function summarize(rows: readonly Row[]): Row {
  const byStolen = rows.toSorted((left, right) => left.stolenShare - right.stolenShare);
  const { p99Ms, stolenShare } = takeMedians(byStolen.slice(0, Math.ceil(rows.length / 3)));
  return { ...takeMedians(rows), quiet: { p99Ms, stolenShare } };
}

function takeMedians(rows: readonly Row[]): Row {
  const entries = Object.keys(rows[0]!).map((key) => {
    const values = rows.map((row) => row[key as keyof Row]);
    return [key, typeof values[0] === 'number' ? median(values as number[]) : values[0]];
  });
  return Object.fromEntries(entries) as Row;
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)]!;
}
