/** Compares what was sent with what arrived, so that a lost or repeated delivery shows. */
import type { Arrival } from './receiver.ts';

/** The first arrival of each delivery by its UUID. */
export function listFirstArrivals(arrivals: readonly Arrival[]): Map<string, number> {
  const first = new Map<string, number>();
  for (const { uuid, atMs } of arrivals) first.set(uuid, Math.min(atMs, first.get(uuid) ?? Number.POSITIVE_INFINITY));
  return first;
}

/** Infinity for a delivery that never arrived, so that it counts as later than all others. */
export function findArrival(arrivals: ReadonlyMap<string, number>, uuid: string | undefined): number {
  return arrivals.get(uuid ?? '') ?? Number.POSITIVE_INFINITY;
}

export function countMissing(delaysMs: readonly number[]): number {
  return delaysMs.filter((delayMs) => !Number.isFinite(delayMs)).length;
}

/** Returns NaN without values. */
export function takePercentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN);
}

export function round(value: number): number {
  return Math.round(value * 100) / 100;
}
