/**
 * Defines accuracy as sums that merge by addition: over minutes, processes, pod types. The sizes of the errors are counted
 * between fixed edges, from which their median is interpolated.
 */
import type { AnsweredRow } from './answered-row.ts';

/** Relative errors in percent: an error is counted below the first edge that exceeds it. */
export const SIZE_EDGES = [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100] as const;

/** The names of the sums, in their order. Errors are relative to the observed time. */
export const SUM_COLUMNS = [
  'times',
  'covered',
  'covered_by_median',
  ...SIZE_EDGES.map((edge) => `below_${edge}`),
  'larger',
  'size',
  'error',
  'miss_ms',
  'observed_ms',
] as const;

const TIMES = 0;
const COVERED = 1;
const COVERED_BY_MEDIAN = 2;
const SIZES = 3;
/** The sums before it are counts. */
export const COUNT_COLUMNS = SIZES + SIZE_EDGES.length + 1;
const SIZE = COUNT_COLUMNS;
const ERROR = SIZE + 1;
const MISS_MS = SIZE + 2;
const OBSERVED_MS = SIZE + 3;

/** The sums in the order of `SUM_COLUMNS`. */
export type AccuracySums = Float64Array;

export function createSums(): AccuracySums {
  return new Float64Array(SUM_COLUMNS.length);
}

export function addObservation(sums: AccuracySums, { predictedMs, p90Ms, observedMs }: AnsweredRow): void {
  const error = (predictedMs - observedMs) / observedMs;
  const size = Math.abs(error);
  sums[TIMES]!++;
  if (observedMs <= p90Ms) sums[COVERED]!++;
  if (observedMs <= predictedMs) sums[COVERED_BY_MEDIAN]!++;
  sums[SIZES + findSize(100 * size)]!++;
  sums[SIZE]! += size;
  sums[ERROR]! += error;
  sums[MISS_MS]! += Math.abs(predictedMs - observedMs);
  sums[OBSERVED_MS]! += observedMs;
}

function findSize(percent: number): number {
  let at = 0;
  while (at < SIZE_EDGES.length && percent >= SIZE_EDGES[at]!) at++;
  return at;
}

export function mergeSums(into: AccuracySums, more: AccuracySums): void {
  for (let at = 0; at < into.length; at++) into[at]! += more[at]!;
}

export function countObservations(sums: AccuracySums): number {
  return sums[TIMES]!;
}

/** In percent, except `rows`; defined as in `evaluation/`. */
export interface LiveScores {
  readonly rows: number;
  readonly mape: number;
  /** Interpolated between the edges at which errors are counted; 100 for every larger one. */
  readonly mdape: number;
  readonly wape: number;
  /** Above 0 when predictions are too long. */
  readonly bias: number;
  readonly p50Coverage: number;
  readonly p90Coverage: number;
}

/** Undefined without observations. */
export function toScores(sums: AccuracySums): LiveScores | undefined {
  const rows = sums[TIMES]!;
  if (rows === 0) return undefined;
  return {
    rows,
    mape: (100 * sums[SIZE]!) / rows,
    mdape: interpolateMedian(sums.subarray(SIZES, COUNT_COLUMNS), rows),
    wape: (100 * sums[MISS_MS]!) / sums[OBSERVED_MS]!,
    bias: (100 * sums[ERROR]!) / rows,
    p50Coverage: (100 * sums[COVERED_BY_MEDIAN]!) / rows,
    p90Coverage: (100 * sums[COVERED]!) / rows,
  };
}

/** Assumes that errors are spread evenly between two edges. */
function interpolateMedian(counts: Float64Array, rows: number): number {
  let below = 0;
  for (const [at, edge] of SIZE_EDGES.entries()) {
    const count = counts[at]!;
    const from = SIZE_EDGES[at - 1] ?? 0;
    if (below + count >= rows / 2) return from + ((edge - from) * (rows / 2 - below)) / count;
    below += count;
  }
  return SIZE_EDGES.at(-1)!;
}
