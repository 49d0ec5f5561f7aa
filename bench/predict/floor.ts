/**
 * What of the waiting is ours: beside the server, at the same rate and with the same bytes, servers that do less. All of
 * them take turns, so that what the machine does to one it does to the others.
 */
import type { LoadConnection } from './grpc-load.ts';
import { runClosedLoop, runOpenLoop } from './load-patterns.ts';
import { connectLoad, measureRow, type Row } from './measure.ts';
import { type ServerProcess, startServer } from './server-process.ts';

const WARM_UP = { inFlight: 32, durationMs: 1500 };

export interface FloorOptions {
  /** Parameters of Node for every server. */
  readonly nodeOptions: readonly string[];
  readonly model: string;
  readonly isPinned: boolean;
  readonly candidates: number;
  readonly turns: number;
  readonly durationMs: number;
  /** Half of what ours can do, unless given. */
  readonly callsPerSecond: number | undefined;
}

interface Peer {
  readonly name: string;
  readonly server: ServerProcess;
  readonly connections: readonly LoadConnection[];
}

interface Capacity {
  readonly callsPerSecond: number;
  readonly cpuMicrosPerCall: number;
}

/** One row a server: the median of each figure over the turns. */
export async function measureFloor(options: FloorOptions): Promise<Row[]> {
  const { candidates, durationMs } = options;
  const peers = await startPeers(options);
  try {
    const [ours, work, transport] = peers;
    const capacity = await warmUp(ours!, candidates);
    const ownMicros = capacity.cpuMicrosPerCall - (await warmUp(transport!, candidates)).cpuMicrosPerCall;
    await work!.server.ask({ workMicros: ownMicros });
    for (const peer of [work!, peers[3]!]) await warmUp(peer, candidates);
    const callsPerSecond = options.callsPerSecond ?? capacity.callsPerSecond / 2;
    const turns: Row[][] = [];
    for (let turn = 0; turn < options.turns; turn++) turns.push(await runTurn(turn));
    return peers.map(({ name }) => summarize(turns.flat().filter(({ pattern }) => pattern === name)));

    async function runTurn(turn: number): Promise<Row[]> {
      const rows: Row[] = [];
      for (const { name, server, connections } of turn % 2 === 0 ? peers : peers.toReversed())
        rows.push(
          await measureRow(server, { candidates, pattern: name }, () =>
            runOpenLoop(connections, { callsPerSecond, durationMs }),
          ),
        );
      return rows;
    }
  } finally {
    for (const { server, connections } of peers) {
      for (const connection of connections) connection.close();
      await server.stop();
    }
  }
}

/** Ours first, then what does less and less. */
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
  return peers;
}

async function warmUp({ server, connections }: Peer, candidates: number): Promise<Capacity> {
  await runClosedLoop(connections, WARM_UP);
  return measureRow(server, { candidates, pattern: 'capacity' }, () => runClosedLoop(connections, WARM_UP));
}

/** What the machine takes makes calls later, never sooner: the turns in which it took least say most about a server. */
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
