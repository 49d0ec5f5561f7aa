/** Summarizes runs of several seeds in one line a policy: the median of the seeds, compared with the heuristic and the oracle. */
import { formatTable } from '../../src/command-line/output.ts';
import type { SimulatedObservation } from '../../src/prediction/simulator/simulate.ts';
import { endToEndMs, type Measures, measure, median } from './measure.ts';
import type { Scenario } from './scenarios.ts';

export interface Result {
  readonly scenario: Scenario;
  readonly policy: string;
  /** One a seed. */
  readonly runs: readonly (readonly SimulatedObservation[])[];
}

/** The part of a run that counts, by arrival. */
export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Summary {
  readonly pool: string;
  readonly rate: number;
  readonly policy: string;
  /** Medians of the seeds, in milliseconds and percent. */
  readonly values: Readonly<Record<Column, number>>;
  /** Compared with load+prefix on the same requests, in percent: median, least and most of the seeds. */
  readonly ttftGain: readonly number[] | undefined;
  readonly endGain: readonly number[] | undefined;
  /** Mean end-to-end time compared with the oracle's on the same requests, in milliseconds. */
  readonly regretMs: number | undefined;
  /** Mean end-to-end time compared with load+prefix, for each 20 s of the warm-up, which shows how long learning takes. */
  readonly warmUp: readonly number[] | undefined;
}

const COLUMNS = {
  'ttft p50': (m: Measures) => m.ttft.p50,
  'ttft p95': (m: Measures) => m.ttft.p95,
  'ttft p99': (m: Measures) => m.ttft.p99,
  'tpot p50': (m: Measures) => m.tpot.p50,
  'tpot p95': (m: Measures) => m.tpot.p95,
  'tpot p99': (m: Measures) => m.tpot.p99,
  'end p50': (m: Measures) => m.endToEnd.p50,
  'end p95': (m: Measures) => m.endToEnd.p95,
  'end p99': (m: Measures) => m.endToEnd.p99,
  'good/s': (m: Measures) => m.goodPerSecond,
  'good %': (m: Measures) => m.goodPercent,
} as const;
type Column = keyof typeof COLUMNS;
const COLUMN_NAMES = Object.keys(COLUMNS) as Column[];

export function summarize(results: readonly Result[], window: Window): Summary[] {
  return results.map((result) => summarizeOne(result, results, window));
}

function summarizeOne(result: Result, results: readonly Result[], window: Window): Summary {
  const { scenario, policy } = result;
  const measures = measureRuns(result, window);
  const peer = (name: string) => results.find((other) => other.scenario === scenario && other.policy === name);
  const heuristic = peer('load+prefix');
  const oracle = peer('oracle');
  const gains = (read: (m: Measures) => number) => heuristic && compare(measures, measureRuns(heuristic, window), read);
  const regrets = oracle && measureRuns(oracle, window).map((best, i) => measures[i]!.meanEndToEnd - best.meanEndToEnd);
  const values = COLUMN_NAMES.map((name) => [name, round(median(measures.map(COLUMNS[name])))] as const);
  return {
    pool: scenario.pool,
    rate: scenario.rate,
    policy,
    values: Object.fromEntries(values) as Summary['values'],
    ttftGain: gains((m) => m.ttft.p50),
    endGain: gains((m) => m.endToEnd.p50),
    regretMs: regrets && Math.round(median(regrets)),
    warmUp: heuristic && policy.startsWith('trivet') ? compareWarmUp(result, heuristic, window) : undefined,
  };
}

function measureRuns({ runs }: Result, window: Window): Measures[] {
  return runs.map((run) => measure(keepWindow(run, window), window.toMs - window.fromMs));
}

export function keepWindow(run: readonly SimulatedObservation[], { fromMs, toMs }: Window): SimulatedObservation[] {
  return run.filter(({ outcome }) => outcome.request.arrivalMs >= fromMs && outcome.request.arrivalMs < toMs);
}

/** Percent less than the other on the same requests: median, least, most. */
function compare(ours: readonly Measures[], theirs: readonly Measures[], read: (m: Measures) => number): number[] {
  const changes = ours.map((one, i) => 100 * (read(one) / read(theirs[i]!) - 1));
  return [median(changes), Math.min(...changes), Math.max(...changes)].map(Math.round);
}

const WARM_UP_PART_MS = 20_000;

function compareWarmUp(ours: Result, theirs: Result, { fromMs }: Window): number[] {
  const parts = Array.from({ length: Math.floor(fromMs / WARM_UP_PART_MS) }, (_, i) => i * WARM_UP_PART_MS);
  return parts.map((start) => {
    const part = { fromMs: start, toMs: start + WARM_UP_PART_MS };
    const ratios = ours.runs.map(
      (run, i) => meanEnd(keepWindow(run, part)) / meanEnd(keepWindow(theirs.runs[i]!, part)),
    );
    return Math.round(100 * median(ratios)) / 100;
  });
}

function meanEnd(observations: readonly SimulatedObservation[]): number {
  return observations.reduce((sum, observation) => sum + endToEndMs(observation), 0) / observations.length;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

export function formatResults(summaries: readonly Summary[]): string {
  const headings = ['pool', 'rate', 'policy', ...COLUMN_NAMES, 'regret', 'ttft p50 vs load+prefix', 'end p50 vs'];
  const rows = summaries.map(({ pool, rate, policy, values, regretMs, ttftGain, endGain }) => [
    pool,
    rate,
    policy,
    ...COLUMN_NAMES.map((name) => values[name]),
    regretMs,
    formatGain(ttftGain),
    formatGain(endGain),
  ]);
  const warmUps = summaries.flatMap(({ pool, rate, policy, warmUp }) =>
    warmUp === undefined ? [] : `${policy}, ${pool}, ${rate}/s: ${warmUp.join(' ')}`,
  );
  const title = 'Mean end-to-end over that of load+prefix, for each 20 s of the warm-up:';
  return [formatTable(headings, rows), ...(warmUps.length > 0 ? ['', title, ...warmUps] : [])].join('\n');
}

export function formatGain(gain: readonly number[] | undefined): string | undefined {
  if (gain === undefined) return undefined;
  const [middle, least, most] = gain;
  return least === most ? `${middle} %` : `${middle} % (${least}…${most})`;
}
