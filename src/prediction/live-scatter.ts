/**
 * How far off what the experts say may be, and so every statistic of it: as the model measured it while learning, until
 * the slot has shown enough, and at each server as much more or less as that has shown.
 */
import type { AskedRows } from './asked-rows.ts';
import { type Calibration, findBucket, LEVELS, type Statistic } from './calibration.ts';
import { type AdaptiveQuantiles, createAdaptiveQuantiles, PROMISES, type Promised } from './conformal.ts';
import { clampMs } from './milliseconds.ts';
import { createReach } from './reach.ts';
import { createServerQuantiles, type ServerQuantiles } from './server-quantiles.ts';

/** What was promised about one request. */
export interface PromisedScatter {
  /** How widely times were scattered at this load while learning, as a logarithm. */
  readonly spread: number;
  /** In units of the spread: one quantile a promise of `PROMISES`. */
  readonly promised: readonly number[];
  /** How many times had been observed when it was. */
  readonly after: number;
}

export interface LiveScatter {
  readonly ofSlot: AdaptiveQuantiles;
  readonly ofServers: ServerQuantiles;
  /** Makes what the experts say the statistic that is asked for, in place. */
  toStatistic(asked: AskedRows, timesMs: Float64Array): void;
  promise(mixtureMs: number, server: number): PromisedScatter;
  /** `logRatio` is that of the observed time to what the experts had said. */
  observe(promise: PromisedScatter, server: number, logRatio: number): void;
  replaceCalibration(calibration: Calibration): void;
}

/** The statistic of each promise. */
const STATISTIC_OF: readonly Statistic[] = ['p50', 'p90', 'p95', 'p99'];
const PROMISE_COUNT = PROMISES.length;

export function createLiveScatter(calibration: Calibration): LiveScatter {
  const ofSlot = createAdaptiveQuantiles();
  const ofServers = createServerQuantiles();
  const reach = createReach();
  let learned = measureLearned(calibration);

  /** As the slot has shown them, the same at every load, or as they were learned for each. */
  function readQuantiles(): QuantileTable {
    const shown = ofSlot.quantiles();
    return shown === undefined ? learned : { quantiles: shown, stride: 0 };
  }

  return {
    ofSlot,
    ofServers,
    toStatistic(asked, timesMs) {
      const promise = STATISTIC_OF.indexOf(asked.statistic);
      if (promise === -1) toMeans(learned, asked, timesMs);
      else toPromises({ ...learned, ...readQuantiles(), ofServers, promise, furthest: reach.furthest }, asked, timesMs);
    },
    promise(mixtureMs, server) {
      const bucket = findBucket(learned.edges, mixtureMs);
      const { quantiles, stride } = readQuantiles();
      const corrections = ofServers.correctionsOf(server);
      const spread = learned.spreads[bucket]!;
      const promised = PROMISES.map((_, p) =>
        Math.min(reach.furthest / spread, correctQuantile(quantiles, bucket * stride, corrections, p)),
      );
      return { spread, promised, after: ofSlot.count };
    },
    observe({ spread, promised, after }, server, logRatio) {
      reach.observe(logRatio);
      const residual = logRatio / spread;
      ofSlot.observe(residual, promised, ofSlot.count - after);
      ofServers.observe(server, residual, promised);
    },
    replaceCalibration(next) {
      learned = measureLearned(next);
    },
  };
}

/** In units of the spread; never below a lesser promise. */
function correctQuantile(quantiles: Float64Array, at: number, corrections: Float64Array, promise: number): number {
  let highest = Number.NEGATIVE_INFINITY;
  for (let p = 0; p <= promise; p++) highest = Math.max(highest, quantiles[at + p]! + corrections[p]!);
  return highest;
}

function toPromises(
  { edges, spreads, quantiles, stride, ofServers, promise, furthest }: AskedPromise,
  { count, rows, servers }: AskedRows,
  timesMs: Float64Array,
): void {
  for (let n = 0; n < count; n++) {
    const row = rows[n]!;
    const ms = timesMs[row]!;
    const bucket = findBucket(edges, ms);
    const quantile = correctQuantile(quantiles, bucket * stride, ofServers.correctionsOf(servers[n]!), promise);
    timesMs[row] = clampMs(ms * promiseFactor(promise, Math.min(furthest, quantile * spreads[bucket]!)));
  }
}

function toMeans({ edges, logMeans }: LearnedScatter, { count, rows }: AskedRows, timesMs: Float64Array): void {
  for (let n = 0; n < count; n++) {
    const row = rows[n]!;
    const ms = timesMs[row]!;
    timesMs[row] = clampMs(ms * Math.exp(logMeans[findBucket(edges, ms)]!));
  }
}

/** What was promised, in milliseconds. */
export function promisedMs(statistic: 'p50' | 'p90', mixtureMs: number, of: PromisedScatter): number {
  const promise = STATISTIC_OF.indexOf(statistic);
  return clampMs(mixtureMs * promiseFactor(promise, of.promised[promise]! * of.spread));
}

/** A lasting bias of more is for the offsets to mend; at an unknown load, the spread alone could move a median by e. */
const MAX_MEDIAN_SHIFT = 0.05;

function promiseFactor(promise: number, shift: number): number {
  if (promise > 0) return Math.exp(shift);
  const small = Math.max(-MAX_MEDIAN_SHIFT, Math.min(MAX_MEDIAN_SHIFT, shift));
  // e^x to five digits, without the price of it: every row of a call comes by here.
  return 1 + small * (1 + small / 2);
}

/** One quantile a promise, in units of the spread; those of a bucket stand at its number times the stride. */
interface QuantileTable {
  readonly quantiles: Float64Array;
  readonly stride: number;
}

/** A calibration as it is asked here, by bucket. */
interface LearnedScatter extends QuantileTable {
  readonly edges: Float64Array;
  readonly spreads: Float64Array;
  readonly logMeans: Float64Array;
}

interface AskedPromise extends LearnedScatter {
  readonly ofServers: ServerQuantiles;
  /** A position in `PROMISES`. */
  readonly promise: number;
  /** As a logarithm: nothing is promised beyond it. */
  readonly furthest: number;
}

/** Times scatter by at least this much: a bucket of equal residuals is luck. */
const MIN_SPREAD = 0.02;
const LOW = LEVELS.indexOf(0.1);
const HIGH = LEVELS.indexOf(0.9);

function measureLearned({ edges, quantiles, logMeans }: Calibration): LearnedScatter {
  const residual = (bucket: number, level: number): number => quantiles[bucket * LEVELS.length + level]!;
  // Half the width of what four of five requests stayed within.
  const spreads = logMeans.map((_, bucket) =>
    Math.max(MIN_SPREAD, (residual(bucket, HIGH) - residual(bucket, LOW)) / 2),
  );
  // What the model says is its median already.
  const promise = (bucket: number, promised: Promised): number =>
    promised === 0.5 ? 0 : residual(bucket, LEVELS.indexOf(promised)) / spreads[bucket]!;
  const promises = Array.from(spreads, (_, bucket) => PROMISES.map((promised) => promise(bucket, promised)));
  return { edges, spreads, logMeans, quantiles: Float64Array.from(promises.flat()), stride: PROMISE_COUNT };
}
