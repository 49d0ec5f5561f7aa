/**
 * How far off what the experts say may be, and so every statistic of it: as the model measured it while learning, until
 * the slot has shown enough, and at each server as much more or less as that has shown.
 */

import { type Calibration, findBucket, LEVELS, median, SHIFT_OF, type Statistic } from '../model/calibration.ts';
import { clampMs } from '../schema/milliseconds.ts';
import type { Target } from '../schema/observation-table.ts';
import type { AskedRows } from './asked-rows.ts';
import { type AdaptiveQuantiles, createAdaptiveQuantiles, PROMISES, type Promised } from './conformal.ts';
import { createRollingMaximum } from './rolling-maximum.ts';
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
const MEDIAN = STATISTIC_OF.indexOf('p50');

export function createLiveScatter(target: Target, calibration: Calibration): LiveScatter {
  const findShift = SHIFT_OF[target];
  const ofSlot = createAdaptiveQuantiles();
  const ofServers = createServerQuantiles();
  const rollingMaximum = createRollingMaximum();
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
      if (promise === -1) toMeans({ ...learned, findShift }, asked, timesMs);
      else if (promise === MEDIAN) toMedians({ ...learned, ...readQuantiles(), ofServers }, asked, timesMs);
      else {
        const furthest = rollingMaximum.value;
        toPromises({ ...learned, ...readQuantiles(), findShift, ofServers, promise, furthest }, asked, timesMs);
      }
    },
    promise(mixtureMs, server) {
      const bucket = findBucket(learned.edges, mixtureMs);
      const corrections = ofServers.correctionsOf(server);
      const spread = learned.spreads[bucket]!;
      const of = { ...learned, ...readQuantiles(), findShift, furthest: rollingMaximum.value };
      const promised = PROMISES.map((_, promise) => {
        if (promise === MEDIAN)
          return ((of.quantiles[MEDIAN]! + corrections[MEDIAN]!) * learned.typicalSpread) / spread;
        const least = Math.log(medianFactor(of, corrections));
        return Math.max(least, shiftPromise({ ...of, promise }, corrections, mixtureMs)) / spread;
      });
      return { spread, promised, after: ofSlot.count };
    },
    observe({ spread, promised, after }, server, logRatio) {
      rollingMaximum.observe(logRatio);
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

/** One shift at every load, so that the order of two loads never turns: learned medians are 0 at each load. */
function toMedians(
  of: LearnedScatter & { readonly ofServers: ServerQuantiles },
  { count, rows, servers }: AskedRows,
  timesMs: Float64Array,
): void {
  for (let n = 0; n < count; n++) {
    const row = rows[n]!;
    timesMs[row] = clampMs(timesMs[row]! * medianFactor(of, of.ofServers.correctionsOf(servers[n]!)));
  }
}

function medianFactor({ quantiles, typicalSpread }: LearnedScatter, corrections: Float64Array): number {
  return promiseFactor(MEDIAN, (quantiles[MEDIAN]! + corrections[MEDIAN]!) * typicalSpread);
}

function toPromises(of: AskedPromise, { count, rows, servers }: AskedRows, timesMs: Float64Array): void {
  for (let n = 0; n < count; n++) {
    const row = rows[n]!;
    const corrections = of.ofServers.correctionsOf(servers[n]!);
    const factor = promiseFactor(of.promise, shiftPromise(of, corrections, timesMs[row]!));
    // Where all observed times were far below the median, which moves slowly, no quantile may be below it.
    timesMs[row] = clampMs(timesMs[row]! * Math.max(factor, medianFactor(of, corrections)));
  }
}

/** What is promised of a time, as a logarithm. */
function shiftPromise(of: BucketPromise, corrections: Float64Array, ms: number): number {
  const { edges, spreads, quantiles, stride, promise, furthest } = of;
  return of.findShift(edges, ms, (bucket) =>
    Math.min(furthest, correctQuantile(quantiles, bucket * stride, corrections, promise) * spreads[bucket]!),
  );
}

function toMeans(
  { edges, logMeans, findShift }: ShiftedScatter,
  { count, rows }: AskedRows,
  timesMs: Float64Array,
): void {
  const readShift = (bucket: number): number => logMeans[bucket]!;
  for (let n = 0; n < count; n++) {
    const row = rows[n]!;
    timesMs[row] = clampMs(timesMs[row]! * Math.exp(findShift(edges, timesMs[row]!, readShift)));
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
  readonly typicalSpread: number;
  readonly logMeans: Float64Array;
}

interface ShiftedScatter extends LearnedScatter {
  readonly findShift: (typeof SHIFT_OF)[Target];
}

interface BucketPromise extends ShiftedScatter {
  /** A position in `PROMISES`. */
  readonly promise: number;
  /** As a logarithm: nothing is promised beyond it. */
  readonly furthest: number;
}

interface AskedPromise extends BucketPromise {
  readonly ofServers: ServerQuantiles;
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
  const typicalSpread = median(spreads.toSorted());
  const table = { quantiles: Float64Array.from(promises.flat()), stride: PROMISE_COUNT };
  return { edges, spreads, typicalSpread, logMeans, ...table };
}
