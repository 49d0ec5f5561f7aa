import type { SimulatedObservation } from '../../src/prediction/simulator/simulate.ts';

/** A request is good when it is within both limits. */
export const SLO = { ttftMs: 1000, tpotMs: 50 };

export interface Quantiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface Measures {
  readonly ttft: Quantiles;
  readonly tpot: Quantiles;
  readonly endToEnd: Quantiles;
  readonly meanEndToEnd: number;
  readonly goodPerSecond: number;
  readonly goodPercent: number;
}

export function endToEndMs({ outcome }: SimulatedObservation): number {
  return outcome.finishedMs - outcome.dispatchedMs;
}

export function measure(observations: readonly SimulatedObservation[], measuredMs: number): Measures {
  const good = observations.filter(
    ({ ttftMs, tpotMs }) => ttftMs <= SLO.ttftMs && (tpotMs === undefined || tpotMs <= SLO.tpotMs),
  );
  const ends = observations.map(endToEndMs);
  return {
    ttft: quantiles(observations.map(({ ttftMs }) => ttftMs)),
    tpot: quantiles(observations.flatMap(({ tpotMs }) => tpotMs ?? [])),
    endToEnd: quantiles(ends),
    meanEndToEnd: ends.reduce((sum, end) => sum + end, 0) / ends.length,
    goodPerSecond: (1000 * good.length) / measuredMs,
    goodPercent: (100 * good.length) / observations.length,
  };
}

export function quantiles(times: readonly number[]): Quantiles {
  const sorted = Float64Array.from(times).sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
