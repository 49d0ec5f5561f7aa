/**
 * How well times are predicted, with peers beside us: XGBoost, LightGBM and Bayesian ridge with llm-d's features and
 * parameters, and our physics alone, learned from the same rows on the same schedule.
 *
 *   node bench/accuracy.ts --input FILE… [--format requests --kv-capacity-tokens N] [--protocol time|prequential]
 *   node bench/accuracy.ts --pools          simulated pools, with prompt, late, batched and lost reports
 *
 * MAPE in percent with 90 % intervals by block bootstrap, and the share of requests below the p90. Peers need Debian's
 * python3-xgboost and python3-sklearn (LightGBM is in no Debian package); `--python` names the interpreter.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Answer, measureAccuracy } from '../src/prediction/evaluation/accuracy.ts';
import { evaluate } from '../src/prediction/evaluation/protocols.ts';
import type { Reporting } from '../src/prediction/evaluation/report-times.ts';
import type { Format } from '../src/prediction/formats/read-observations.ts';
import { readTable } from '../src/prediction/formats/read-table.ts';
import { evaluatePhysics, fitPhysics } from '../src/prediction/physics/physics.ts';
import {
  type ObservationTable,
  observedTimes,
  selectRows,
  TARGETS,
  type Target,
} from '../src/prediction/schema/observation-table.ts';
import { DEFAULT_TRAINING } from '../src/prediction/training/train-model.ts';
import { bootstrapMean } from './accuracy/bootstrap.ts';
import { type BenchProtocol, type Part, planParts } from './accuracy/schedule.ts';

const { values: flags, positionals } = parseArgs({
  options: {
    input: { type: 'string', multiple: true, default: [] },
    format: { type: 'string' },
    'kv-capacity-tokens': { type: 'string' },
    protocol: { type: 'string', default: 'time' },
    pools: { type: 'boolean', default: false },
    python: { type: 'string', default: '/usr/bin/python3' },
  },
  allowPositionals: true,
});
const PROTOCOL = flags.protocol as BenchProtocol;
const HEAD = ['file', 'predictor', 'TTFT MAPE % (90 %)', 'TTFT p90 %', 'TPOT MAPE % (90 %)', 'TPOT p90 %'];

type Cells = Partial<Record<Target, { readonly mape: string; readonly p90: string }>>;

async function read(path: string, format: string | undefined, kvCapacity: string | undefined) {
  const { table } = await readTable([path], {
    format: format as Format | undefined,
    targetModel: '',
    kvCapacityTokens: kvCapacity === undefined ? undefined : Number(kvCapacity),
    stdin: process.stdin,
  });
  return table;
}

function printRow(file: string, predictor: string, cells: Cells): void {
  const texts = TARGETS.flatMap((target) => [cells[target]?.mape ?? '–', cells[target]?.p90 ?? '–']);
  console.log(`| ${[file, predictor, ...texts].join(' | ')} |`);
}

function describeErrors(errors: readonly number[]): string {
  const { mean, low, high } = bootstrapMean(errors);
  return `${mean.toFixed(1)} (${low.toFixed(1)}–${high.toFixed(1)})`;
}

function percentOff({ predictedMs, observedMs }: Pick<Answer, 'predictedMs' | 'observedMs'>): number {
  return (100 * Math.abs(predictedMs - observedMs)) / observedMs;
}

/** Ours, on the rows that the peers are judged on. */
function judgeOurs(table: ObservationTable, judged: ReadonlySet<number>, reporting?: Reporting): Cells {
  const answers = evaluate(PROTOCOL, table, { parameters: DEFAULT_TRAINING, onProgress: () => {}, reporting });
  const cells: Cells = {};
  for (const target of TARGETS) {
    const same = answers[target].filter(({ row }) => judged.has(row));
    if (same.length === 0) continue;
    const p90 = measureAccuracy(same)!.p90Coverage.toFixed(1);
    cells[target] = { mape: describeErrors(same.map(percentOff)), p90 };
  }
  return cells;
}

function judgePhysics(table: ObservationTable, target: Target, parts: readonly Part[]): number[] {
  const observed = observedTimes(table, target);
  return parts.flatMap(({ learn, judge }) => {
    const times = Float64Array.from(learn, (row) => observed[row]!);
    const physics = fitPhysics(target, selectRows(table, learn), times);
    const predicted = new Float64Array(judge.length);
    evaluatePhysics(physics, selectRows(table, judge), judge.length, predicted);
    return judge.map((row, i) => percentOff({ predictedMs: predicted[i]!, observedMs: observed[row]! }));
  });
}

/** As llm-d describes a request: TPOT without the prefix cache, which its rows do not have. */
function describeRow(table: ObservationTable, target: Target, row: number): number[] {
  const load = [table.kvCacheUsage, table.inputTokenLength, table.numRequestWaiting, table.numRequestRunning];
  const values = [...load, table.inflightTokens].map((column) => column[row]!);
  const prefix = table.prefixCacheScore[row]!;
  return target === 'ttft' ? [...values, prefix, (1 - prefix) * table.inputTokenLength[row]!] : values;
}

interface PeerLine {
  readonly name: string;
  readonly missing?: boolean;
  readonly predictions?: readonly (readonly number[])[];
}

function runPeers(table: ObservationTable, target: Target, schedule: readonly Part[]): PeerLine[] {
  const rows = Array.from({ length: table.count }, (_, row) => row);
  const observed = Array.from(observedTimes(table, target).subarray(0, table.count), (ms) => (ms > 0 ? ms : 0));
  const input = JSON.stringify({ features: rows.map((row) => describeRow(table, target, row)), observed, schedule });
  const script = fileURLToPath(new URL('./accuracy/peers.py', import.meta.url));
  const { stdout, stderr, status } = spawnSync(flags.python, [script], { input, maxBuffer: 1 << 28, encoding: 'utf8' });
  if (status !== 0) throw new Error(`Cannot run the peers: ${stderr}`);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as PeerLine);
}

function judgePeers(table: ObservationTable, partsOf: Readonly<Record<Target, readonly Part[]>>): Map<string, Cells> {
  const cells = new Map<string, Cells>();
  for (const target of TARGETS) {
    const parts = partsOf[target];
    if (parts.length === 0) continue;
    const observed = observedTimes(table, target);
    for (const { name, missing, predictions } of runPeers(table, target, parts)) {
      const errors = (predictions ?? []).flatMap((predicted, part) =>
        predicted.map((predictedMs, i) => percentOff({ predictedMs, observedMs: observed[parts[part]!.judge[i]!]! })),
      );
      const mape = missing === true ? 'not installed' : describeErrors(errors);
      cells.set(name, { ...cells.get(name), [target]: { mape, p90: '–' } });
    }
  }
  return cells;
}

async function judgeFile(path: string): Promise<void> {
  const table = await read(path, flags.format, flags['kv-capacity-tokens']);
  const partsOf = { ttft: planParts(table, 'ttft', PROTOCOL), tpot: planParts(table, 'tpot', PROTOCOL) };
  const judged = new Set(TARGETS.flatMap((target) => partsOf[target].flatMap(({ judge }) => judge)));
  const file = basename(path);
  printRow(file, 'Trivet', judgeOurs(table, judged));
  const physics: Cells = {};
  for (const target of TARGETS)
    if (partsOf[target].length > 0)
      physics[target] = { mape: describeErrors(judgePhysics(table, target, partsOf[target])), p90: '–' };
  printRow(file, 'physics alone', physics);
  for (const [name, cells] of judgePeers(table, partsOf)) printRow(file, name, cells);
}

/** Pools and reports for which figures are kept in the note on what follows the servers. */
const POOLS: readonly [name: string, options: string][] = [
  ['unlike', '--servers large:1,medium:2,small:1 --rate 8 --duration 400 --seed 2'],
  ['like', '--servers medium:4 --rate 10 --duration 300 --seed 5'],
  ['one, loaded', '--servers medium:1 --rate 12 --duration 120 --seed 3'],
];
const REPORTINGS: readonly [name: string, reporting: Reporting][] = [
  ['at once', { delayMs: 0, batchMs: 0, lostShare: 0 }],
  ['2 s late', { delayMs: 2000, batchMs: 0, lostShare: 0 }],
  ['every 5 s', { delayMs: 0, batchMs: 5000, lostShare: 0 }],
  ['a fifth lost', { delayMs: 0, batchMs: 0, lostShare: 0.2 }],
];

async function judgePools(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-accuracy-'));
  const trivet = fileURLToPath(new URL('../bin/trivet.js', import.meta.url));
  try {
    for (const [name, options] of POOLS) {
      const path = join(folder, 'pool.jsonl');
      const more = `--policy round-robin --workload poisson --format requests --output ${path}`;
      spawnSync(process.execPath, [trivet, 'simulate', ...options.split(' '), ...more.split(' ')]);
      const table = await read(path, 'requests', '100000');
      const all = new Set(Array.from({ length: table.count }, (_, row) => row));
      for (const [reports, reporting] of REPORTINGS)
        printRow(`simulated, ${name}`, `Trivet, reports ${reports}`, judgeOurs(table, all, reporting));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

console.log(`| ${HEAD.join(' | ')} |\n|${'---|'.repeat(HEAD.length)}`);
for (const path of [...flags.input, ...positionals]) await judgeFile(path);
if (flags.pools) await judgePools();
