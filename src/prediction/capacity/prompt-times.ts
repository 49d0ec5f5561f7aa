/**
 * Learns from first tokens how long a server takes to compute a prompt. Prompts are computed in the order of arrival, so prompt
 * i begins at its arrival t_i, or at the newest first token before it, and ends with its own first token F_i: S_i = max(0, F_i −
 * max(t_i, F_1, …, F_{i−1})). With S in place of TTFT, waits are not drawn from observed ones but follow by the recursion of
 * Lindley (1952): F of a new prompt is max(t, F of the prompts before) + S. Drawn waits would add their variance to that of the
 * simulated queue, and would not show queues longer than those observed. `simulate-queue.ts` has a table of symbols.
 */
import type { Observation } from '../schema/observation.ts';
import type { Random } from '../simulator/random-draws.ts';
import { countUnderWay } from './load-curve.ts';
import { computePrompt } from './prompt-queue.ts';

export interface PromptTimes {
  /** Returns the milliseconds that an observed prompt took, drawn at random from those in a similar situation. */
  draw(met: MetPrompt, random: Random): number;
}

export interface MetPrompt {
  /** Requests at the server when the prompt arrived. */
  readonly underWay: number;
  /** The tokens of the prompt that were not cached. */
  readonly tokens: number;
  /** True if other prompts had to be computed before it. Even a prompt that waits for no other waits for the step under way. */
  readonly isQueued: boolean;
}

const MIN_PROMPTS = 40;
/** About this many prompts are in each range of n. */
const RANGE_SAMPLES = 200;
/** A prompt is drawn from this many of a range: those with the nearest numbers of tokens. */
const NEIGHBOURS = 10;
/** At least this share of the mean time is the base, which does not depend on tokens. */
const LEAST_BASE = 0.1;
/** A drawn time was observed at another number of tokens. It is scaled to the simulated number, by this factor at most. */
const MOST_SCALED = 2;
/** After a pause of this length between samples, waiting requests that are in no sample are a queue of unknown length. */
const UNKNOWN_AFTER_MS = 2000;

interface ObservedPrompt extends MetPrompt {
  readonly ms: number;
}

/** Returns the tokens of a prompt that the server has to compute. */
export function countUncached({
  inputTokenLength,
  prefixCacheScore,
}: Pick<Observation['input'], 'inputTokenLength' | 'prefixCacheScore'>): number {
  return inputTokenLength * Math.max(0, 1 - prefixCacheScore);
}

/**
 * The samples must be of one server; `reportedShare` is their share of its requests. Returns undefined if fewer than `MIN_PROMPTS`
 * samples show a time without a wait of unknown length.
 */
export function collectPromptTimes(samples: readonly Observation[], reportedShare: number): PromptTimes | undefined {
  const prompts = [...Map.groupBy(samples, ({ run }) => run).values()].flatMap((ofRun) =>
    listPrompts(ofRun, reportedShare),
  );
  if (prompts.length < MIN_PROMPTS) return undefined;
  const [queued, alone] = [true, false].map((isQueued) =>
    splitRanges(prompts.filter((prompt) => prompt.isQueued === isQueued)),
  ) as [LoadRange[], LoadRange[]];
  return {
    draw({ underWay, tokens, isQueued }, random) {
      const ranges = (isQueued && queued.length > 0) || alone.length === 0 ? queued : alone;
      const { prompts: near, line } = ranges.find(({ end }) => end >= underWay) ?? ranges.at(-1)!;
      const first = Math.max(0, Math.min(findPlace(near, tokens) - (NEIGHBOURS >> 1), near.length - NEIGHBOURS));
      const drawn = near[first + Math.floor(random() * Math.min(NEIGHBOURS, near.length))]!;
      // Even the nearest prompts differ in length, most for the longest prompts.
      const scale = line(tokens) / line(drawn.tokens);
      return drawn.ms * Math.max(1 / MOST_SCALED, Math.min(MOST_SCALED, scale));
    },
  };
}

function listPrompts(samples: readonly Observation[], reportedShare: number): ObservedPrompt[] {
  const prompts: ObservedPrompt[] = [];
  let busyUntilMs = Number.NEGATIVE_INFINITY;
  let lastMs = Number.NEGATIVE_INFINITY;
  for (const { atMs, input, ttftMs } of samples.toSorted((a, b) => (a.atMs ?? 0) - (b.atMs ?? 0))) {
    if (ttftMs === undefined) continue;
    const met = { underWay: countUnderWay(input), tokens: countUncached(input) };
    if (atMs === undefined) {
      prompts.push({ ...met, isQueued: false, ms: ttftMs });
      continue;
    }
    const { startMs, firstTokenMs } = computePrompt(atMs, busyUntilMs, { ...met, firstTokenMs: atMs + ttftMs });
    const isQueued = startMs > atMs;
    const isUnknown = !isQueued && input.numRequestWaiting > 0 && atMs - lastMs > UNKNOWN_AFTER_MS;
    // Between two samples of a queue, the server also computed prompts that are not in the samples.
    const ms = Math.max(0, firstTokenMs - startMs) * (isQueued ? reportedShare : 1);
    if (!isUnknown) prompts.push({ ...met, isQueued, ms });
    busyUntilMs = Math.max(startMs, firstTokenMs);
    lastMs = atMs;
  }
  return prompts;
}

interface LoadRange {
  /** The largest n in the range. */
  readonly end: number;
  /** Sorted by tokens. */
  readonly prompts: readonly ObservedPrompt[];
  /** Returns the mean time of prompts with this number of tokens, above 0. */
  readonly line: (tokens: number) => number;
}

function splitRanges(prompts: readonly ObservedPrompt[]): LoadRange[] {
  if (prompts.length === 0) return [];
  const sorted = prompts.toSorted((a, b) => a.underWay - b.underWay);
  const count = Math.max(1, Math.floor(sorted.length / RANGE_SAMPLES));
  return Array.from({ length: count }, (_, k) => {
    const from = Math.floor((k * sorted.length) / count);
    const range = sorted.slice(from, Math.floor(((k + 1) * sorted.length) / count));
    return {
      end: range.at(-1)!.underWay,
      prompts: range.toSorted((a, b) => a.tokens - b.tokens),
      line: fitLine(range),
    };
  });
}

/** Fits a line by least squares, with base and slope of at least 0. */
function fitLine(prompts: readonly ObservedPrompt[]): (tokens: number) => number {
  const mean = (read: (prompt: ObservedPrompt) => number) =>
    prompts.reduce((sum, prompt) => sum + read(prompt), 0) / prompts.length;
  const [meanTokens, meanMs] = [
    mean(({ tokens }) => tokens),
    Math.max(
      Number.MIN_VALUE,
      mean(({ ms }) => ms),
    ),
  ];
  const variance = mean(({ tokens }) => (tokens - meanTokens) ** 2);
  const covariance = mean(({ tokens, ms }) => (tokens - meanTokens) * (ms - meanMs));
  const steepest = meanTokens > 0 ? ((1 - LEAST_BASE) * meanMs) / meanTokens : 0;
  const slope = variance > 0 ? Math.max(0, Math.min(steepest, covariance / variance)) : 0;
  return (tokens) => meanMs + slope * (tokens - meanTokens);
}

function findPlace(prompts: readonly ObservedPrompt[], tokens: number): number {
  let [low, high] = [0, prompts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (prompts[middle]!.tokens < tokens) low = middle + 1;
    else high = middle;
  }
  return low;
}
