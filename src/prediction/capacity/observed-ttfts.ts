/**
 * The observed TTFTs of a server, by the load that each request met: n requests under way, and w prompt tokens to compute until
 * its first token. At the same n the queue of prompts is longer while n rises than while it falls, so n alone would mix bursts
 * and steady rates.
 */
import type { Observation } from '../schema/observation.ts';
import type { Random } from '../simulator/random-draws.ts';
import { countUnderWay } from './load-curve.ts';
import { createPromptQueue } from './prompt-queue.ts';

export interface ObservedTtfts {
  /** The TTFT of a random request that met about this load. */
  draw(met: MetLoad, random: Random): number;
}

export interface MetLoad {
  readonly underWay: number;
  /** Prompt tokens to compute until the first token, its own among them. */
  readonly tokensAhead: number;
}

/** The requests that met one range of n; all ranges have about as many. */
const RANGE_SAMPLES = 150;
/** In a range, one of this many requests with the nearest w is drawn. */
const NEIGHBOURS = 12;

interface Met extends MetLoad {
  readonly ttftMs: number;
}

/** Tokens of a prompt that the server has to compute. */
export function countUncached({
  inputTokenLength,
  prefixCacheScore,
}: Pick<Observation['input'], 'inputTokenLength' | 'prefixCacheScore'>): number {
  return inputTokenLength * Math.max(0, 1 - prefixCacheScore);
}

export function collectTtfts(samples: readonly Observation[], reportedShare: number): ObservedTtfts {
  const met = [...Map.groupBy(samples, ({ run }) => run).values()].flatMap((ofRun) => listMet(ofRun, reportedShare));
  met.sort((a, b) => a.underWay - b.underWay);
  const ranges = splitRanges(met);
  const ends = ranges.map((range) => range.at(-1)!.underWay);
  for (const range of ranges) range.sort((a, b) => a.tokensAhead - b.tokensAhead);

  /** High loads are rare, and all of them had long queues. For a short queue, requests at a lower load are the better match. */
  function findRange(index: number, tokensAhead: number): { readonly range: readonly Met[]; readonly place: number } {
    const range = ranges[index]!;
    const place = findPlace(range, tokensAhead);
    return place >= NEIGHBOURS >> 1 || index === 0 ? { range, place } : findRange(index - 1, tokensAhead);
  }

  return {
    draw({ underWay, tokensAhead }, random) {
      const { range, place } = findRange(Math.min(ranges.length - 1, findFirst(ends, underWay)), tokensAhead);
      const first = Math.max(0, Math.min(place - (NEIGHBOURS >> 1), range.length - NEIGHBOURS));
      const count = Math.min(NEIGHBOURS, range.length);
      return range[first + Math.floor(random() * count)]!.ttftMs;
    },
  };
}

/** In the order of time, with the prompts before each that were not computed yet; samples without a time met none. */
function listMet(samples: readonly Observation[], reportedShare: number): Met[] {
  const queue = createPromptQueue();
  const met: Met[] = [];
  for (const { atMs, input, ttftMs } of samples.toSorted((a, b) => (a.atMs ?? 0) - (b.atMs ?? 0))) {
    if (ttftMs === undefined) continue;
    const tokens = countUncached(input);
    const before = atMs === undefined ? 0 : queue.countTokens(atMs) / reportedShare;
    met.push({ underWay: countUnderWay(input), tokensAhead: before + tokens, ttftMs });
    if (atMs !== undefined) queue.add(atMs, { tokens, firstTokenMs: atMs + ttftMs });
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

function findPlace(range: readonly Met[], tokensAhead: number): number {
  let [low, high] = [0, range.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (range[middle]!.tokensAhead < tokensAhead) low = middle + 1;
    else high = middle;
  }
  return low;
}
