/**
 * Measures the value of server history where several processes predict, and each receives only some of the events at once:
 * errors of TTFT on simulated pools, trained and evaluated with the events that a process would have known.
 * `node bench/shared-history.ts [--processes 3]`.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bootstrapMean } from '../src/prediction/evaluation/bootstrap.ts';
import { evaluate } from '../src/prediction/evaluation/protocols.ts';
import { readTable } from '../src/prediction/formats/read-table.ts';
import { replayHistory } from '../src/prediction/history/replay-history.ts';
import { HISTORY_COLUMNS } from '../src/prediction/schema/columns.ts';
import { type ObservationTable, selectRows } from '../src/prediction/schema/observation-table.ts';
import { DEFAULT_TRAINING } from '../src/prediction/training/train-model.ts';
import { readBenchFlags } from './support/bench-flags.ts';

const { values: flags } = readBenchFlags({ options: { processes: { type: 'string', default: '3' } } });
const PROCESSES = Number(flags.processes);

const POOLS: readonly [name: string, options: string][] = [
  ['four unlike servers', '--servers large:1,medium:2,small:1 --rate 8 --duration 400 --seed 2'],
  ['four like servers', '--servers medium:4 --rate 10 --duration 300 --seed 5'],
  ['one loaded server', '--servers medium:1 --rate 12 --duration 240 --seed 3'],
  ['two loaded servers', '--servers medium:2 --rate 24 --duration 120 --seed 4'],
];

/** When the predicting process knows of an event that the same or another process received; infinity for never. */
interface Sharing {
  readonly name: string;
  readonly own: (eventMs: number) => number;
  readonly others: (eventMs: number) => number;
}

const atOnce = (eventMs: number): number => eventMs;
const never = (): number => Number.POSITIVE_INFINITY;
/** Processes write a row each second, and the others read it at most 333 ms, in the mean 170 ms, later. */
const inNextRow = (eventMs: number): number => Math.ceil(eventMs / 1000) * 1000 + 170;

const late =
  (delayMs: number) =>
  (eventMs: number): number =>
    eventMs + delayMs;

const SHARINGS: readonly Sharing[] = [
  { name: 'no history', own: never, others: never },
  { name: 'all events at once (one process)', own: atOnce, others: atOnce },
  { name: 'own events only, each request asked and reported at one process', own: atOnce, others: never },
  { name: 'own events at once, others 100 ms later', own: atOnce, others: late(100) },
  { name: 'own events at once, others 300 ms later', own: atOnce, others: late(300) },
  { name: 'own events at once, others shared a second later', own: atOnce, others: inNextRow },
  { name: 'all events a second later (asked at one, reported to another)', own: inNextRow, others: inNextRow },
];

function shareHistory(table: ObservationTable, { own, others }: Sharing): ObservationTable {
  const rows = Array.from({ length: table.count }, (_, row) => row);
  const shared = selectRows(table, rows);
  const requests = rows.map((row) => ({
    server: String(table.server[row]),
    atMs: table.atMs[row]!,
    firstTokenMs: table.atMs[row]! + table.ttftMs[row]!,
    tokens: table.inputTokenLength[row]! * Math.max(0, 1 - table.prefixCacheScore[row]!),
  }));
  // Each process gets a fixed share of the requests, in an order that is independent of the load.
  const processOf = (row: number): number => Math.floor(((row * 0.618034) % 1) * PROCESSES);
  for (let viewer = 0; viewer < PROCESSES; viewer++) {
    const histories = replayHistory(requests, (eventMs, row) =>
      processOf(row) === viewer ? own(eventMs) : others(eventMs),
    );
    for (const row of rows)
      if (processOf(row) === viewer)
        for (const [h, name] of HISTORY_COLUMNS.entries()) shared[name][row] = histories[row]![h]!;
  }
  return shared;
}

function judge(table: ObservationTable): string {
  const { ttft } = evaluate('time', table, { parameters: DEFAULT_TRAINING, onProgress: () => {} });
  const { mean, low, high } = bootstrapMean(
    ttft.map(({ predictedMs, observedMs }) => (100 * Math.abs(predictedMs - observedMs)) / observedMs),
  );
  return `${mean.toFixed(1)} (${low.toFixed(1)}–${high.toFixed(1)})`;
}

const folder = mkdtempSync(join(tmpdir(), 'trivet-history-'));
const trivet = fileURLToPath(new URL('../bin/trivet.js', import.meta.url));
try {
  console.log(`| pool | ${SHARINGS.map(({ name }) => name).join(' | ')} |\n|${'---|'.repeat(SHARINGS.length + 1)}`);
  for (const [name, options] of POOLS) {
    const path = join(folder, 'pool.jsonl');
    const more = `--policy round-robin --workload poisson --format requests --output ${path}`;
    spawnSync(process.execPath, [trivet, 'simulate', ...options.split(' '), ...more.split(' ')]);
    const { table } = await readTable([path], {
      format: 'requests',
      targetModel: '',
      kvCapacityTokens: 100_000,
      stdin: process.stdin,
    });
    console.log(
      `| ${name}, ${table.count} requests | ${SHARINGS.map((sharing) => judge(shareHistory(table, sharing))).join(' | ')} |`,
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
