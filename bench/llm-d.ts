/**
 * Compares our predictor interface of llm-d with llm-d's own server: rows per second that one core predicts, 64 rows a call.
 * `node bench/llm-d.ts [--rows 64] [--seconds 5] [--turns 3] [--connections 8] [--python /usr/bin/python3] [--json]`.
 *
 * Needs FastAPI, uvicorn, pandas and XGBoost for that Python: on Debian, python3-fastapi, python3-uvicorn, python3-pandas
 * and python3-xgboost. Both servers run on core 0 in turns, the callers on core 1. The figure is the processor time that the
 * server took for the rows, which other programs hardly change.
 */
import { execFileSync } from 'node:child_process';
import { cpus, release } from 'node:os';
import { loadServer, type Reading } from './llm-d/load-server.ts';
import { type FieldServers, startFieldServer, startOurServer } from './llm-d/servers.ts';
import { readBenchFlags } from './support/bench-flags.ts';

const { values: flags } = readBenchFlags({
  options: {
    rows: { type: 'string', default: '64' },
    seconds: { type: 'string', default: '5' },
    turns: { type: 'string', default: '3' },
    connections: { type: 'string', default: '8' },
    python: { type: 'string', default: '/usr/bin/python3' },
    json: { type: 'boolean', default: false },
  },
});

const load = {
  rows: Number(flags.rows),
  durationMs: 1000 * Number(flags.seconds),
  connections: Number(flags.connections),
};
const starts: Record<string, () => Promise<FieldServers>> = {
  trivet: startOurServer,
  field: () => startFieldServer(flags.python),
};

async function main(): Promise<void> {
  execFileSync('taskset', ['-a', '-p', '-c', '1', String(process.pid)]);
  const readings = new Map<string, Reading[]>(Object.keys(starts).map((name) => [name, []]));
  for (let turn = 0; turn < Number(flags.turns); turn++)
    for (const [name, start] of Object.entries(starts)) {
      const server = await start();
      try {
        await loadServer(server, { ...load, durationMs: 1000 });
        readings.get(name)!.push(await loadServer(server, load));
      } finally {
        await server.stop();
      }
    }
  const machine = `${cpus()[0]?.model ?? 'unknown'}, Linux ${release()}, Node ${process.version}`;
  const servers = [...readings].map(([name, turns]) => ({ name, ...medianOf(turns) }));
  const ratio = servers[0]!.rowsPerCpuSecond / servers[1]!.rowsPerCpuSecond;
  const report = { date: new Date().toISOString(), machine, rowsOfACall: load.rows, servers, ratio };
  process.stdout.write(flags.json ? `${JSON.stringify(report)}\n` : render(report));
}

/** Returns the turn with the median processor time. */
function medianOf(turns: readonly Reading[]): Reading {
  return [...turns].sort((a, b) => a.rowsPerCpuSecond - b.rowsPerCpuSecond)[Math.floor(turns.length / 2)]!;
}

interface Report {
  readonly machine: string;
  readonly rowsOfACall: number;
  readonly servers: readonly (Reading & { readonly name: string })[];
  readonly ratio: number;
}

function render({ machine, rowsOfACall, servers, ratio }: Report): string {
  const lines = servers.map(
    ({ name, rowsPerCpuSecond, rowsPerSecond, cpuMillisPerCall }) =>
      `| ${name} | ${Math.round(rowsPerCpuSecond)} | ${Math.round(rowsPerSecond)} | ${cpuMillisPerCall.toFixed(2)} |`,
  );
  return [
    `${machine}; ${rowsOfACall} rows a call, one core each`,
    '| server | rows per second of a core | rows per second | processor ms a call |',
    '|---|---|---|---|',
    ...lines,
    `${ratio.toFixed(1)} times as many rows per second and core`,
    '',
  ].join('\n');
}

await main();
