/**
 * Measures the speed of training and evaluation on one thread, and of XGBoost and scikit-learn if Python has them.
 * `node bench/model.ts [--json] [--rows 100000] [--trees 200] [--trace FILE]`. Times are CPU time of the process, which
 * a busy machine hardly changes; medians after a warm-up.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { binRows, fitBinning } from '../src/prediction/gbdt/binning.ts';
import { createEvaluator } from '../src/prediction/gbdt/evaluate.ts';
import { trainForest } from '../src/prediction/gbdt/training/boost.ts';
import type { Forest } from '../src/prediction/gbdt/tree.ts';
import { generateProblem, type Problem, readTrace } from './model/problem.ts';
import { readBenchFlags } from './support/bench-flags.ts';

const { values: flags } = readBenchFlags({
  options: {
    json: { type: 'boolean', default: false },
    rows: { type: 'string', default: '100000' },
    trees: { type: 'string', default: '200' },
    trace: { type: 'string' },
  },
});
const TREES = Number(flags.trees);
const KERNELS = ['wasm', 'plain'] as const;
const CANDIDATES = [64, 16, 1];

type Kernel = (typeof KERNELS)[number];

interface Trained {
  readonly name: string;
  readonly trainSeconds: number;
  /** The error on held-out rows. */
  readonly rmse: number;
  /** Candidate rows a second, two forests each, 64 rows a call. */
  readonly rowsPerSecond: number;
}

interface Evaluated {
  readonly kernel: Kernel;
  readonly candidates: number;
  readonly microsecondsPerCall: number;
  readonly rowsPerSecond: number;
}

function measureCpuSeconds(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

/** Binning included, as in the peers' `fit`. */
function train(problem: Problem, kernel: Kernel): Forest {
  const columns = problem.columns.map((column) => column.subarray(0, problem.trainRows));
  const rows = binRows(fitBinning(columns), columns);
  return trainForest({ rows, target: problem.target.subarray(0, problem.trainRows) }, { trees: TREES, kernel });
}

function measureError(problem: Problem, forest: Forest): number {
  const from = problem.trainRows;
  const count = problem.target.length - from;
  const evaluator = createEvaluator([forest], { capacity: count });
  problem.columns.forEach((column, feature) => {
    evaluator.values.set(column.subarray(from), feature * evaluator.capacity);
  });
  evaluator.evaluate(count);
  const predicted = evaluator.outputs[0]!;
  let sum = 0;
  for (let i = 0; i < count; i++) sum += (predicted[i]! - problem.target[from + i]!) ** 2;
  return Math.sqrt(sum / count);
}

/** Makes enough calls for the resolution of the clock. */
function measureCall(forest: Forest, kernel: Kernel, candidates: number, problem: Problem): Evaluated {
  const evaluator = createEvaluator([forest, forest], { kernel, capacity: candidates });
  problem.columns.forEach((column, feature) => {
    evaluator.values.set(column.subarray(0, candidates), feature * evaluator.capacity);
  });
  const calls = kernel === 'wasm' ? 2000 : 200;
  const run = (): number =>
    measureCpuSeconds(() => {
      for (let call = 0; call < calls; call++) evaluator.evaluate(candidates);
    });
  for (let warmUp = 0; warmUp < 3; warmUp++) run();
  const seconds = median(Array.from({ length: 9 }, run)) / calls;
  return { kernel, candidates, microsecondsPerCall: seconds * 1e6, rowsPerSecond: candidates / seconds };
}

function measureOurs(problem: Problem): { trained: Trained[]; evaluated: Evaluated[] } {
  const evaluated: Evaluated[] = [];
  const trained = KERNELS.map((kernel): Trained => {
    let forest = train(problem, kernel);
    const seconds = Array.from({ length: 3 }, () =>
      measureCpuSeconds(() => {
        forest = train(problem, kernel);
      }),
    );
    const calls = CANDIDATES.map((candidates) => measureCall(forest, kernel, candidates, problem));
    evaluated.push(...calls);
    return {
      name: `Trivet, ${kernel}`,
      trainSeconds: median(seconds),
      rmse: measureError(problem, forest),
      rowsPerSecond: calls[0]!.rowsPerSecond,
    };
  });
  return { trained, evaluated };
}

/** Returns no results and prints the reason if Python is missing. */
function measurePeers(problem: Problem): Trained[] {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-bench-'));
  try {
    const values = problem.columns.map((column) => new Uint8Array(column.buffer, column.byteOffset, column.byteLength));
    writeFileSync(join(folder, 'values.f32'), Buffer.concat(values));
    writeFileSync(join(folder, 'target.f64'), new Uint8Array(problem.target.buffer));
    const testRows = problem.target.length - problem.trainRows;
    const script = fileURLToPath(new URL('model/peers.py', import.meta.url));
    const sizes = [problem.trainRows, testRows, problem.columns.length, TREES].map(String);
    // Only Debian's own Python has Debian's packages, whatever is first in PATH.
    const { stdout, error } = spawnSync('/usr/bin/python3', [script, folder, ...sizes], { encoding: 'utf8' });
    if (error !== undefined) note(`skipped the peers: ${error.message}`);
    const lines = (stdout ?? '').split('\n').filter((line) => line !== '');
    const answers = lines.map((line) => JSON.parse(line) as Trained | { readonly missing: string });
    for (const answer of answers) if ('missing' in answer) note(`skipped: Python lacks ${answer.missing}`);
    return answers.filter((answer) => 'name' in answer);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join('  ');
  return [header, ...rows].map((row) => `${line(row)}\n`).join('');
}

const problem = flags.trace === undefined ? generateProblem(Number(flags.rows), 20_000) : readTrace(flags.trace);
const ours = measureOurs(problem);
const trained = [...ours.trained, ...measurePeers(problem)];
const machine = `${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}, ${new Date().toISOString().slice(0, 10)}`;
if (flags.json) {
  process.stdout.write(
    `${JSON.stringify({ machine, problem: problem.title, trees: TREES, trained, evaluated: ours.evaluated })}\n`,
  );
} else {
  process.stdout.write(`${machine}\n${problem.title}, ${TREES} trees, one thread, CPU time\n\n`);
  const rows = trained.map(({ name, trainSeconds, rmse, rowsPerSecond }) => [
    name,
    trainSeconds.toFixed(2),
    rmse.toFixed(4),
    Math.round(rowsPerSecond).toLocaleString('en'),
  ]);
  process.stdout.write(formatTable(['', 'training, s', 'held-out RMSE', 'rows/s, 2 targets, 64 a call'], rows));
  const calls = ours.evaluated.map(({ kernel, candidates, microsecondsPerCall, rowsPerSecond }) => [
    `${kernel}, ${candidates} rows`,
    microsecondsPerCall.toFixed(1),
    Math.round(rowsPerSecond).toLocaleString('en'),
  ]);
  process.stdout.write(`\n${formatTable(['one call, both targets', 'µs', 'rows/s'], calls)}`);
}
