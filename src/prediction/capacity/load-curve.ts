/**
 * Learns from samples how waiting, running, cache and tokens of a server follow from its requests under way. Capacity simulates
 * only the requests under way; the rest depends on the server and on how the gateway counts, and the samples reflect both.
 */
import type { Observation } from '../schema/observation.ts';
import type { ObservedInput } from '../schema/observation-event.ts';

/** The metrics of a row that depend on how much is under way. */
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
  /** The mean metrics with this many requests under way; none falls where more are. Beyond the samples they grow in proportion. */
  at(underWay: number): LoadMetrics;
  /** The most requests under way for which there are enough samples. */
  readonly seen: number;
  /** The fewest requests under way for which there are enough samples. */
  readonly lowest: number;
}

/** A knot is the mean of at least this many samples. */
const MIN_KNOT_SAMPLES = 20;

/** This many samples, or this share of them if that is less, must have met a lower load: the few of a start from idle are not typical of low loads. */
const LOW_SAMPLES = 300;
const LOW_SHARE = 0.1;

interface Knot {
  readonly underWay: number;
  readonly metrics: LoadMetrics;
  /** How many samples it is the mean of. */
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
    // All samples of one number under way belong together.
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
 * The isotonic regression of each metric on the requests under way. In a burst that starts from idle, all requests wait: a few of
 * those must not make a load seem heavier than one above it, where a steady server has none that wait.
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

/** Pools neighbours that fall (Ayer et al. 1955). Returns the mean of each one's pool. */
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

/** The position of the first knot with at least this many requests under way. */
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

/** The load if there is no sample under load: only the number of running requests is known. */
function toRunning(underWay: number): LoadMetrics {
  return mapFields((name) => (name === 'numRequestRunning' ? underWay : 0));
}

function mapFields(read: (name: (typeof LOAD_FIELDS)[number], field: number) => number): LoadMetrics {
  return Object.fromEntries(LOAD_FIELDS.map((name, field) => [name, read(name, field)])) as unknown as LoadMetrics;
}

/** The requests under way that a request met. */
export interface ReportedLoad {
  readonly server: string;
  readonly underWay: number;
  readonly atMs: number;
}

const MAX_REPORT_AGE_MS = 60_000;

/** An older report says nothing about the load now, nor does one that is dated ahead by a wrong clock. */
export function isFreshReport(atMs: number, nowMs: number): boolean {
  return Math.abs(nowMs - atMs) <= MAX_REPORT_AGE_MS;
}

/**
 * The load of each server in its newest request. The newest sample is another one: that of a TPOT is stored when the answer ends,
 * with the load and the time of its dispatch. Loads that are dated too far ahead are left out: they would
 * hide all later ones.
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

/** Samples without a time of day say nothing about the load now. */
export function listLoads(samples: readonly Observation[]): ReportedLoad[] {
  return samples.flatMap(({ input, atMs }) =>
    atMs === undefined ? [] : [{ server: input.serverIp, underWay: countUnderWay(input), atMs }],
  );
}
