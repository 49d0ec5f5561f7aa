/**
 * Learns from samples how waiting and running requests, KV cache use and tokens of a server depend on its requests under way. A
 * capacity simulates only the requests under way; the rest depends on the server and on how the gateway counts, as the samples do.
 */
import type { Observation } from '../schema/observation.ts';
import type { ObservedInput } from '../schema/observation-event.ts';

/** The metrics of a row that depend on the requests under way. */
export const LOAD_FIELDS = [
  'numRequestWaiting',
  'numRequestRunning',
  'kvCacheUsage',
  'inflightTokens',
  'hbmUtilization',
  'aiCoreUtilization',
  'bandwidthUtilization',
] as const satisfies readonly (keyof ObservedInput)[];

export type LoadMetrics = Readonly<Record<(typeof LOAD_FIELDS)[number], number>>;

export interface LoadCurve {
  /** Returns the mean metrics at this many requests under way. None decreases with more. Beyond the samples they grow in proportion. */
  at(underWay: number): LoadMetrics;
  /** The most requests under way for which there are enough samples. */
  readonly seen: number;
  /** The fewest requests under way for which there are enough samples. */
  readonly lowest: number;
}

/** A knot is the mean of at least this many samples. */
const MIN_KNOT_SAMPLES = 20;

/**
 * This many samples, or this share of them if that is less, are left out at the low end: those of a start from idle are too few to
 * be typical of low loads.
 */
const LOW_SAMPLES = 300;
const LOW_SHARE = 0.1;

interface Knot {
  readonly underWay: number;
  readonly metrics: LoadMetrics;
  /** The number of samples in the mean. */
  readonly weight: number;
}

export function fitLoadCurve(samples: readonly LoadMetrics[]): LoadCurve {
  const sorted = samples.toSorted((a, b) => countUnderWay(a) - countUnderWay(b));
  const knots = makeRising(joinSamples(sorted));
  const countAt = (place: number) =>
    countUnderWay(sorted[Math.max(0, Math.min(place, sorted.length - 1))] ?? toRunning(0));
  return {
    seen: countAt(sorted.length - MIN_KNOT_SAMPLES),
    lowest: countAt(Math.min(LOW_SAMPLES, Math.floor(LOW_SHARE * sorted.length))),
    at(underWay) {
      const next = findKnot(knots, underWay);
      if (next === 0) return knots.length === 0 ? toRunning(underWay) : scale(knots[0]!, underWay);
      if (next === knots.length) return scale(knots.at(-1)!, underWay);
      return interpolate(knots[next - 1]!, knots[next]!, underWay);
    },
  };
}

export function countUnderWay({ numRequestWaiting, numRequestRunning }: LoadMetrics): number {
  return numRequestWaiting + numRequestRunning;
}

function joinSamples(sorted: readonly LoadMetrics[]): Knot[] {
  const knots: Knot[] = [];
  for (let start = 0; start < sorted.length; ) {
    let end = start;
    // Samples with equally many requests under way stay in one knot.
    while (end < sorted.length && (end - start < MIN_KNOT_SAMPLES || isSameLoad(sorted, end))) end++;
    if (sorted.length - end < MIN_KNOT_SAMPLES) end = sorted.length;
    const metrics = meanOf(sorted.slice(start, end));
    knots.push({ underWay: countUnderWay(metrics), metrics, weight: end - start });
    start = end;
  }
  return knots;
}

function isSameLoad(sorted: readonly LoadMetrics[], i: number): boolean {
  return countUnderWay(sorted[i]!) === countUnderWay(sorted[i - 1]!);
}

function meanOf(samples: readonly LoadMetrics[]): LoadMetrics {
  return mapFields((name) => samples.reduce((sum, sample) => sum + sample[name], 0) / samples.length);
}

/**
 * Fits each metric by isotonic regression on the requests under way. In a burst that starts from idle, all requests wait. A few
 * such samples must not make a load seem heavier than a higher one, at which no request waits on a steady server.
 */
function makeRising(knots: readonly Knot[]): Knot[] {
  const fitted = LOAD_FIELDS.map((name) =>
    poolFalls(knots.map(({ metrics, weight }) => ({ mean: metrics[name], weight }))),
  );
  return knots.map((knot, k) => ({ ...knot, metrics: mapFields((_, field) => fitted[field]![k]!) }));
}

interface Pool {
  readonly mean: number;
  readonly weight: number;
}

/** Pools adjacent violators (Ayer et al. 1955). Returns for each point the mean of its pool. */
function poolFalls(points: readonly Pool[]): number[] {
  const pools: (Pool & { readonly size: number })[] = [];
  for (const point of points) {
    let last = { ...point, size: 1 };
    for (let before = pools.at(-1); before !== undefined && before.mean > last.mean; before = pools.at(-1)) {
      const weight = before.weight + last.weight;
      const mean = (before.mean * before.weight + last.mean * last.weight) / weight;
      last = { mean, weight, size: before.size + last.size };
      pools.pop();
    }
    pools.push(last);
  }
  return pools.flatMap(({ mean, size }) => Array.from({ length: size }, () => mean));
}

/** Returns the position of the first knot with at least this many requests under way. */
function findKnot(knots: readonly Knot[], underWay: number): number {
  let [low, high] = [0, knots.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (knots[middle]!.underWay < underWay) low = middle + 1;
    else high = middle;
  }
  return low;
}

function interpolate(lower: Knot, upper: Knot, underWay: number): LoadMetrics {
  const width = upper.underWay - lower.underWay;
  const share = width === 0 ? 0 : (underWay - lower.underWay) / width;
  return mapFields((name) => lower.metrics[name] + share * (upper.metrics[name] - lower.metrics[name]));
}

function scale({ underWay: known, metrics }: Knot, underWay: number): LoadMetrics {
  return known === 0 ? toRunning(underWay) : mapFields((name) => (metrics[name] * underWay) / known);
}

/** Returns the load without any sample under load: only the number of running requests is known. */
function toRunning(underWay: number): LoadMetrics {
  return mapFields((name) => (name === 'numRequestRunning' ? underWay : 0));
}

function mapFields(read: (name: (typeof LOAD_FIELDS)[number], field: number) => number): LoadMetrics {
  return Object.fromEntries(LOAD_FIELDS.map((name, field) => [name, read(name, field)])) as unknown as LoadMetrics;
}

/** The requests under way at a server when a request was dispatched. */
export interface ReportedLoad {
  readonly server: string;
  readonly underWay: number;
  readonly atMs: number;
}

const MAX_REPORT_AGE_MS = 60_000;

/** Neither an older report shows the present load, nor one that a wrong clock dated ahead. */
export function isFreshReport(atMs: number, nowMs: number): boolean {
  return Math.abs(nowMs - atMs) <= MAX_REPORT_AGE_MS;
}

/**
 * Returns the load of each server that its last dispatched request met. The last stored sample may be another one: that of a TPOT
 * is stored when the answer ends, with the load and the time of its dispatch. Loads dated too far ahead are left out, since
 * they would hide all later ones.
 */
export function findNewestLoads(loads: Iterable<ReportedLoad>, nowMs: number): Map<string, ReportedLoad> {
  const newest = new Map<string, ReportedLoad>();
  for (const load of loads) {
    const known = newest.get(load.server);
    const isNewer = known === undefined || load.atMs > known.atMs;
    if (isNewer && load.atMs <= nowMs + MAX_REPORT_AGE_MS) newest.set(load.server, load);
  }
  return newest;
}

/** Leaves out samples without a time of day, which do not show the present load. */
export function listLoads(samples: readonly Observation[]): ReportedLoad[] {
  return samples.flatMap(({ input, atMs }) =>
    atMs === undefined ? [] : [{ server: input.serverIp, underWay: countUnderWay(input), atMs }],
  );
}
