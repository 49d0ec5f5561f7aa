/** Judges what an attack cost by the goals, and decides which of its tries counts. */
import type { Measured } from './measure-attack.ts';

const MAX_RSS_MB = 400;

/** Noise of the machine only adds to p99: another try may meet that goal. No other goal is missed by noise. */
export function isNoisePossible(row: Measured): boolean {
  return row.ratio > row.maxRatio && !missesMoreThanP99(row);
}

/** The try that missed more than p99, or else the one with the smallest ratio. */
export function chooseTry(best: Measured, next: Measured): Measured {
  return missesMoreThanP99(next) || next.ratio < best.ratio ? next : best;
}

export function findMisses({ during, ratio, maxRatio, peakRssMb, hasDied }: Measured): string[] {
  return [
    ...(hasDied ? ['died'] : []),
    ...(during.failures > 0 ? [`failures (${during.failure})`] : []),
    ...(ratio > maxRatio ? ['p99'] : []),
    ...(peakRssMb > MAX_RSS_MB ? ['memory'] : []),
  ];
}

function missesMoreThanP99(row: Measured): boolean {
  return findMisses(row).some((miss) => miss !== 'p99');
}
