/**
 * The TTFTs that requests at a server had, by what they met: n requests under way, and w prompt tokens that had arrived
 * in the last seconds and were not cached. The same n means more waiting while it rises than while it falls, so n alone
 * would mix what bursts and steady rates do.
 */
import type { Observation } from '../schema/observation.ts';
import type { Random } from '../simulator/random-draws.ts';
import { countUnderWay } from './load-curve.ts';

export interface ObservedTtfts {
  /** The TTFT of a request that met about the same, drawn at random. */
  draw(met: MetLoad, random: Random): number;
}

export interface MetLoad {
  readonly underWay: number;
  /** As of `RECENT_MS`. */
  readonly recentTokens: number;
}

/** About as long as prompts wait for each other at a server that keeps up. */
export const RECENT_MS = 2000;

/** Those who met one range of n; each range has about as many. */
const RANGE_SAMPLES = 150;
/** In a range, one of so many with the nearest w is drawn. */
const NEIGHBOURS = 12;

interface Met extends MetLoad {
  readonly ttftMs: number;
}

export function countTokens(input: Pick<Observation['input'], 'inputTokenLength' | 'prefixCacheScore'>): number {
  return input.inputTokenLength * Math.max(0, 1 - input.prefixCacheScore);
}

export function collectTtfts(samples: readonly Observation[], reportedShare: number): ObservedTtfts {
  const met = [...Map.groupBy(samples, ({ run }) => run).values()].flatMap((ofRun) => listMet(ofRun, reportedShare));
  met.sort((a, b) => a.underWay - b.underWay);
  const ranges = splitRanges(met);
  const ends = ranges.map((range) => range.at(-1)!.underWay);
  for (const range of ranges) range.sort((a, b) => a.recentTokens - b.recentTokens);
  return {
    draw({ underWay, recentTokens }, random) {
      const range = ranges[Math.min(ranges.length - 1, findFirst(ends, underWay))]!;
      const place = findPlace(range, recentTokens);
      const first = Math.max(0, Math.min(place - (NEIGHBOURS >> 1), range.length - NEIGHBOURS));
      const count = Math.min(NEIGHBOURS, range.length);
      return range[first + Math.floor(random() * count)]!.ttftMs;
    },
  };
}

/** In the order of time, with what had arrived before each; samples without a time met nothing. */
function listMet(samples: readonly Observation[], reportedShare: number): Met[] {
  const sorted = samples.toSorted((a, b) => (a.atMs ?? 0) - (b.atMs ?? 0));
  const met: Met[] = [];
  let recentTokens = 0;
  let oldest = 0;
  for (const { atMs = 0, input, ttftMs } of sorted) {
    while ((sorted[oldest]!.atMs ?? 0) <= atMs - RECENT_MS) recentTokens -= countTokens(sorted[oldest++]!.input);
    if (ttftMs !== undefined)
      met.push({ underWay: countUnderWay(input), recentTokens: recentTokens / reportedShare, ttftMs });
    recentTokens += countTokens(input);
  }
  return met;
}

function splitRanges(met: readonly Met[]): Met[][] {
  const count = Math.max(1, Math.floor(met.length / RANGE_SAMPLES));
  return Array.from({ length: count }, (_, k) =>
    met.slice(Math.floor((k * met.length) / count), Math.floor(((k + 1) * met.length) / count)),
  );
}

function findFirst(ends: readonly number[], underWay: number): number {
  let [low, high] = [0, ends.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle]! < underWay) low = middle + 1;
    else high = middle;
  }
  return low;
}

function findPlace(range: readonly Met[], recentTokens: number): number {
  let [low, high] = [0, range.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (range[middle]!.recentTokens < recentTokens) low = middle + 1;
    else high = middle;
  }
  return low;
}
