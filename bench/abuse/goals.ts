/** Compares the cost of an attack with the goals, and decides which of its tries counts. */
import type { Measured } from './measure-attack.ts';

const MAX_RSS_MB = 400;

/** Whether another try may help: noise of the machine only adds to p99, and affects no other goal. */
export function isNoisePossible(row: Measured): boolean {
  return row.ratio > row.maxRatio && !missesMoreThanP99(row);
}

/** Returns the try that missed a goal other than p99, or else the one with the smallest ratio. */
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
