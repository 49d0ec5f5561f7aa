/** Computes quantiles of observed divided by predicted time from counts in ranges. */
import type { ErrorsByLoad } from './accuracy-views.ts';

export interface RangeErrors {
  readonly range: number;
  readonly rows: number;
  /** Observed time divided by predicted time. */
  readonly p10: number;
  readonly median: number;
  readonly p90: number;
}

/** Returns only ranges with reports. */
export function summarizeRanges({ counts, ratioEdges }: ErrorsByLoad): RangeErrors[] {
  return [...Map.groupBy(counts, ({ range }) => range)]
    .sort(([one], [other]) => one - other)
    .map(([range, own]) => ({ range, ...summarizeErrors({ counts: own, ratioEdges }) }));
}

export function summarizeErrors({ counts, ratioEdges }: Pick<ErrorsByLoad, 'counts' | 'ratioEdges'>) {
  const times = Array.from({ length: ratioEdges.length + 1 }, () => 0);
  for (const count of counts) times[count.ratio]! += count.times;
  const find = (level: number) => findQuantile(times, ratioEdges, level);
  return { rows: times.reduce((sum, count) => sum + count), p10: find(0.1), median: find(0.5), p90: find(0.9) };
}

/** Interpolates the logarithm between two edges; outside of the edges it returns the outermost one. */
function findQuantile(times: readonly number[], edges: readonly number[], level: number): number {
  const wanted = level * times.reduce((sum, count) => sum + count);
  let below = 0;
  for (const [at, count] of times.entries()) {
    if (count > 0 && below + count >= wanted) {
      const from = edges[at - 1] ?? edges[0]!;
      const to = edges[at] ?? edges.at(-1)!;
      return from * (to / from) ** ((wanted - below) / count);
    }
    below += count;
  }
  return 1;
}

/** Returns the percentage of reports whose ratio is in ranges between the two. */
export function shareBetween({ counts, ratioEdges }: ErrorsByLoad, low: number, high: number): number {
  const isWithin = (ratio: number) =>
    (ratioEdges[ratio - 1] ?? 0) >= low * 0.9999 && (ratioEdges[ratio] ?? Number.POSITIVE_INFINITY) <= high * 1.0001;
  const sum = (own: ErrorsByLoad['counts']) => own.reduce((total, { times }) => total + times, 0);
  return (100 * sum(counts.filter(({ ratio }) => isWithin(ratio)))) / Math.max(1, sum(counts));
}
