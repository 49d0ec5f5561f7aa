/**
 * Counts errors by load, as a two-dimensional histogram for each axis: range of the load, and ratio of observed to predicted
 * time. The axis `predicted_ms` gives the chart of predicted against observed times.
 */
import { METRIC_FIELDS } from '../schema/columns.ts';
import type { MetricName } from '../schema/input-fields.ts';
import type { AnsweredRow } from './answered-row.ts';

export interface ErrorAxis {
  readonly name: 'predicted_ms' | MetricName;
  /** The limits between its ranges: range 0 is below the first edge, range 1 from there to the second. */
  readonly edges: readonly number[];
}

/** Axes and ranges are stored by their positions: new axes must go to the end, and edges must not change. */
export const ERROR_AXES = [
  // Two for each doubling, from a millisecond to about two minutes.
  { name: 'predicted_ms', edges: Array.from({ length: 35 }, (_, i) => 2 ** (i / 2)) },
  { name: 'num_request_waiting', edges: [1, 2, 4, 8, 16, 32, 64, 128] },
  { name: 'num_request_running', edges: [1, 2, 4, 8, 16, 32, 64, 128, 256] },
  { name: 'kv_cache_usage', edges: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9] },
  { name: 'prefix_cache_score', edges: [0.05, 0.25, 0.5, 0.75, 0.95] },
  { name: 'input_token_length', edges: [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768] },
] as const satisfies readonly ErrorAxis[];

export type ErrorAxisName = (typeof ERROR_AXES)[number]['name'];

const FACTORS = [1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5, 2, 3, 4];

/** The limits between the ranges of observed divided by predicted time. */
export const RATIO_EDGES: readonly number[] = [...FACTORS.toReversed().map((factor) => 1 / factor), ...FACTORS];

const METRIC_AT = ERROR_AXES.map(({ name }) => METRIC_FIELDS.indexOf(name as MetricName));

/** The range of this row on each axis, in their order. */
export function findAxisRanges({ predictedMs, metrics }: AnsweredRow): number[] {
  return ERROR_AXES.map(({ edges }, axis) => {
    const at = METRIC_AT[axis]!;
    return findRange(edges, at === -1 ? predictedMs : metrics[at]!);
  });
}

export function findRatio({ predictedMs, observedMs }: AnsweredRow): number {
  return findRange(RATIO_EDGES, observedMs / predictedMs);
}

/** How many edges were reached. */
function findRange(edges: readonly number[], value: number): number {
  let from = 0;
  let to = edges.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (value >= edges[middle]!) from = middle + 1;
    else to = middle;
  }
  return from;
}
