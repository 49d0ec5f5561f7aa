/**
 * Measures how far `trivet model capacity` is from the rate at which the simulator exceeds a limit, in percent of that rate.
 * That rate is the first at which the quantile over several runs exceeds the limit, among rates 4 % apart.
 * `node bench/capacity.ts [--pools one,two,large-small,large-medium,three] [--recordings bursts,steady,busy,one] [--runs 6]
 * [--seed 501] [--without-lengths] [--json]`. Simulated time: the machine does not matter. It takes minutes a pool.
 */

import { isFailure } from '../src/errors.ts';
import { findCapacity } from '../src/prediction/capacity/find-capacity.ts';
import { createObservedPool } from '../src/prediction/capacity/observed-pool.ts';
import { type LatencyLimits, quantileOf } from '../src/prediction/capacity/search-rates.ts';
import {
  findGpu,
  learnPool,
  MEAN_OUTPUT_TOKENS,
  RECORDINGS,
  runPool,
} from '../test/support/prediction/capacity-pool.ts';
import { readBenchFlags } from './support/bench-flags.ts';

const { values: flags } = readBenchFlags({
  options: {
    pools: { type: 'string', default: 'one,two,large-small,large-medium,three' },
    recordings: { type: 'string', default: 'bursts,steady,busy,one' },
    runs: { type: 'string', default: '6' },
    seed: { type: 'string', default: '501' },
    'without-lengths': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

interface BenchPool {
  readonly gpus: readonly string[];
  /** About the rate, in requests a second, at which queues grow without end. */
  readonly saturation: number;
}

const POOLS: Readonly<Record<string, BenchPool>> = {
  one: { gpus: ['medium'], saturation: 16 },
  two: { gpus: ['medium', 'medium'], saturation: 33 },
  'large-small': { gpus: ['large', 'small'], saturation: 42 },
  'large-medium': { gpus: ['large', 'medium'], saturation: 50 },
  three: { gpus: ['large', 'medium', 'small'], saturation: 52 },
};
const LIMITS: readonly LatencyLimits[] = [
  { ttftMs: 1000, tpotMs: 40, quantile: 0.9 },
  { ttftMs: 300, tpotMs: undefined, quantile: 0.9 },
  { ttftMs: undefined, tpotMs: 30, quantile: 0.9 },
  { ttftMs: 800, tpotMs: 45, quantile: 0.9 },
  { ttftMs: 400, tpotMs: undefined, quantile: 0.9 },
  { ttftMs: undefined, tpotMs: 35, quantile: 0.95 },
];
const [LOWEST, HIGHEST, STEP] = [0.3, 1.4, 1.04];
const REQUESTS_EACH_SERVER = 3000;

interface Truth {
  readonly rate: number;
  readonly ttftMs: Float64Array;
  readonly tpotMs: Float64Array;
}

function main(): void {
  for (const name of flags.pools.split(',')) {
    const pool = POOLS[name]!;
    const truths = measureTruths(pool);
    for (const recording of flags.recordings.split(',')) {
      const answers = compareAnswers(pool, recording, truths);
      const line = `${name}, ${recording}: ${answers.join('  ')}`;
      process.stdout.write(`${flags.json ? JSON.stringify({ name, recording, answers }) : line}\n`);
    }
  }
}

function measureTruths({ gpus, saturation }: BenchPool): Truth[] {
  const truths: Truth[] = [];
  for (let rate = LOWEST * saturation; rate < HIGHEST * saturation; rate *= STEP) truths.push(measureAt(gpus, rate));
  return truths;
}

function measureAt(names: readonly string[], rate: number): Truth {
  const gpus = names.map(findGpu);
  const run = { kind: 'poisson', gpus, requestsPerSecond: rate, requests: REQUESTS_EACH_SERVER * gpus.length } as const;
  const observed = Array.from({ length: Number(flags.runs) }, (_, i) => runPool({ ...run, seed: 901 + i })).flat();
  return {
    rate,
    ttftMs: Float64Array.from(observed, ({ ttftMs }) => ttftMs).sort(),
    tpotMs: Float64Array.from(observed.flatMap(({ tpotMs }) => tpotMs ?? [])).sort(),
  };
}

/** Interpolates the logarithms between the last rate within the limits and the first above them. */
function findBreak(truths: readonly Truth[], limits: LatencyLimits): number {
  const broken = truths.findIndex((truth) => measureUse(truth, limits) > 1);
  if (broken < 1) return Number.NaN;
  const [below, above] = [truths[broken - 1]!, truths[broken]!];
  const [useBelow, useAbove] = [measureUse(below, limits), measureUse(above, limits)];
  return below.rate * (above.rate / below.rate) ** (Math.log(1 / useBelow) / Math.log(useAbove / useBelow));
}

function measureUse(truth: Truth, { ttftMs = Number.POSITIVE_INFINITY, tpotMs, quantile }: LatencyLimits): number {
  const tpotUse = quantileOf(truth.tpotMs, quantile) / (tpotMs ?? Number.POSITIVE_INFINITY);
  return Math.max(quantileOf(truth.ttftMs, quantile) / ttftMs, tpotUse);
}

function compareAnswers({ gpus, saturation }: BenchPool, recording: string, truths: readonly Truth[]): string[] {
  const { rates, ...recorded } = RECORDINGS[recording]!;
  const { model, samples } = learnPool({
    ...recorded,
    gpus: gpus.map(findGpu),
    rates: rates.map((rate) => rate * saturation),
    seed: Number(flags.seed),
  });
  const known = flags['without-lengths'] ? samples.map((sample) => ({ ...sample, outputTokens: undefined })) : samples;
  const options = { servers: undefined, podType: '', outputTokens: MEAN_OUTPUT_TOKENS };
  const pool = createObservedPool({ model, samples: known, ...options });
  return LIMITS.map((limits) => {
    try {
      const capacity = findCapacity(pool, limits);
      const percent = 100 * ((capacity?.requestsPerSecond ?? 0) / findBreak(truths, limits) - 1);
      return `${capacity?.limitedBy === 'observed load' ? 'at least ' : ''}${percent.toFixed(0)} %`;
    } catch (error) {
      if (!isFailure(error)) throw error;
      return 'refused';
    }
  });
}

main();
