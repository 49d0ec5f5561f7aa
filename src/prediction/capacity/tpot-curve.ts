/**
 * Learns from samples how long a token takes at a server with n requests under way. `simulate-queue.ts` has a table of symbols.
 *
 * A prediction is for a request that arrives at load n. During its answer the load returns towards its mean, so
 * a prediction at a high n is lower than the time per token while n stays that high: the regression dilution of a noisy
 * regressor. So each TPOT is assigned to the mean load while its answer was generated,
 *   n̄_i = 1/D_i ∫ n(t) dt from F_i to F_i + D_i,  D_i = output tokens · TPOT_i,
 * where n(t) is the step function of the loads that successive samples met. Prompts take time from answers, and in bursts
 * they come while n is still low. With ρ̄_i the mean pace of computed prompts in the same span, and c the time that a
 * prompt token takes,
 *   1 / TPOT_i = (1 − c ρ̄_i) / P(n̄_i),
 * since of a time D, the server spends D · c ρ̄ on prompts. It is linear in ρ, so a fit to means over
 * answers holds at each moment too. c is fitted among answers of about the same n̄, and P is the isotonic regression of
 * TPOT_i · (1 − c ρ̄_i) on n̄.
 */
import type { Observation } from '../schema/observation.ts';
import { countUnderWay } from './load-curve.ts';
import { createMeanLoad, createMeanPace } from './mean-load.ts';

export interface TpotCurve {
  /** Returns the median milliseconds for a token while this many requests are under way and prompts are computed at this pace. */
  at(underWay: number, promptTokensPerMs: number): number;
  /** Returns the tokens of each answer a millisecond; below 0 while prompts need more than the whole server. */
  paceAt(underWay: number, promptTokensPerMs: number): number;
  /** Returns the tokens that each answer loses to prompt tokens that take no time of their own. */
  countDelayed(underWay: number, promptTokens: number): number;
  /** Returns the observations at about this many requests under way. */
  near(underWay: number): ObservedNear;
}

export interface ObservedNear {
  /** These observations count up to this many requests under way; infinity at the highest loads. */
  readonly end: number;
  /** The mean pace at which prompts were computed. */
  readonly promptTokensPerMs: number;
  /** Observed times divided by those of the curve, sorted. */
  readonly factors: Float64Array;
}

interface Point {
  readonly underWay: number;
  readonly tpotMs: number;
}

/** A point, and the pace at which prompt tokens were computed during the answer. */
interface Answer extends Point {
  readonly promptTokensPerMs: number;
}

export interface TpotCurveOptions {
  /** The mean length of an answer. */
  readonly outputTokens: number;
  /** The share of the server's requests that were reported. */
  readonly reportedShare: number;
}

export const MIN_TPOT_SAMPLES = 40;
/** On average, answers get at least this share of a server, however many prompts it computes. */
const LEAST_SHARE = 0.05;
const ROUNDS = 8;
/** Loads that differ by less are joined: a slope between them would be noise. */
const LEAST_STEP = 0.1;

/** Samples must be of one server. Returns undefined without enough of them. */
export function fitTpotCurve(samples: readonly Observation[], options: TpotCurveOptions): TpotCurve | undefined {
  const answers = listAnswers(samples, options).sort((a, b) => a.underWay - b.underWay);
  if (answers.length < MIN_TPOT_SAMPLES) return undefined;
  const cost = fitPromptCost(answers);
  const shareOf = ({ promptTokensPerMs }: Pick<Answer, 'promptTokensPerMs'>) =>
    Math.max(LEAST_SHARE, 1 - cost * promptTokensPerMs);
  const knots = makeIsotonic(joinPoints(answers.map((one) => ({ ...one, tpotMs: one.tpotMs * shareOf(one) }))));
  const at = (underWay: number, promptTokensPerMs: number) =>
    interpolate(knots, underWay) / shareOf({ promptTokensPerMs });
  const ranges = splitRanges(answers).map((range, i, all) => ({
    end: i === all.length - 1 ? Number.POSITIVE_INFINITY : range.at(-1)!.underWay,
    promptTokensPerMs: meanPaceOf(range),
    factors: Float64Array.from(
      range,
      ({ underWay, promptTokensPerMs, tpotMs }) => tpotMs / at(underWay, promptTokensPerMs),
    ).sort(),
  }));
  return {
    at,
    paceAt: (underWay, promptTokensPerMs) => (1 - cost * promptTokensPerMs) / interpolate(knots, underWay),
    countDelayed: (underWay, promptTokens) => (cost * promptTokens) / interpolate(knots, underWay),
    near: (underWay) => ranges.find(({ end }) => end >= underWay)!,
  };
}

function meanPaceOf(answers: readonly Answer[]): number {
  return answers.reduce((sum, { promptTokensPerMs }) => sum + promptTokensPerMs, 0) / answers.length;
}

/** About this many answers are in each range of load. */
const RANGE_ANSWERS = 150;

function splitRanges(sorted: readonly Answer[]): Answer[][] {
  const count = Math.max(1, Math.floor(sorted.length / RANGE_ANSWERS));
  return Array.from({ length: count }, (_, k) =>
    sorted.slice(Math.floor((k * sorted.length) / count), Math.floor(((k + 1) * sorted.length) / count)),
  );
}

/**
 * Fits the c of 1 / TPOT = (1 − c ρ̄) / P, in milliseconds a prompt token, by least squares among the answers of each range,
 * relative to the range's mean of 1 / TPOT. That mean contains 1 − c ρ̄ too, so the fit is iterated.
 */
function fitPromptCost(sorted: readonly Answer[]): number {
  const ranges = splitRanges(sorted).map((answers) => ({
    answers,
    meanPace: meanPaceOf(answers),
    meanRate: answers.reduce((sum, { tpotMs }) => sum + 1 / tpotMs, 0) / answers.length,
  }));
  let cost = 0;
  for (let round = 0; round < ROUNDS; round++) {
    let [covariance, variance] = [0, 0];
    for (const { answers, meanPace, meanRate } of ranges) {
      const share = Math.max(LEAST_SHARE, 1 - cost * meanPace);
      for (const { promptTokensPerMs, tpotMs } of answers) {
        covariance -= ((promptTokensPerMs - meanPace) * share) / (tpotMs * meanRate);
        variance += (promptTokensPerMs - meanPace) ** 2;
      }
    }
    cost = variance > 0 ? Math.max(0, covariance / variance) : 0;
  }
  return cost;
}

function listAnswers(samples: readonly Observation[], { outputTokens, reportedShare }: TpotCurveOptions): Answer[] {
  return [...Map.groupBy(samples, ({ run }) => run).values()].flatMap((ofRun) => {
    const meanLoad = createMeanLoad(ofRun);
    const meanPace = createMeanPace(ofRun);
    return ofRun.flatMap(({ input, atMs, ttftMs = 0, tpotMs, outputTokens: own }) => {
      if (tpotMs === undefined) return [];
      if (atMs === undefined) return [{ underWay: countUnderWay(input), promptTokensPerMs: 0, tpotMs }];
      const fromMs = atMs + ttftMs;
      const untilMs = fromMs + (own || outputTokens) * tpotMs;
      const underWay = meanLoad(fromMs, untilMs, countUnderWay(input));
      return [{ underWay, promptTokensPerMs: meanPace(fromMs, untilMs) / reportedShare, tpotMs }];
    });
  });
}

interface Knot extends Point {
  readonly weight: number;
}

function joinPoints(sorted: readonly Point[]): Knot[] {
  const knots: Knot[] = [];
  const count = Math.max(1, Math.floor(sorted.length / MIN_TPOT_SAMPLES));
  for (let k = 0; k < count; k++) {
    const part = sorted.slice(Math.floor((k * sorted.length) / count), Math.floor(((k + 1) * sorted.length) / count));
    const times = part.map((point) => point.tpotMs).sort((a, b) => a - b);
    const underWay = part.reduce((sum, point) => sum + point.underWay, 0) / part.length;
    const knot = { underWay, tpotMs: times[times.length >> 1]!, weight: part.length };
    const last = knots.at(-1);
    if (last !== undefined && underWay - last.underWay < LEAST_STEP) knots[knots.length - 1] = joinKnots(last, knot);
    else knots.push(knot);
  }
  return knots;
}

function joinKnots(one: Knot, other: Knot): Knot {
  const weight = one.weight + other.weight;
  const mean = (a: number, b: number) => (a * one.weight + b * other.weight) / weight;
  return { underWay: mean(one.underWay, other.underWay), tpotMs: mean(one.tpotMs, other.tpotMs), weight };
}

/** Pools adjacent violators (Ayer et al. 1955), because more load never makes a token faster. */
function makeIsotonic(knots: readonly Knot[]): Knot[] {
  const pooled: Knot[] = [];
  for (const knot of knots) {
    let last = knot;
    for (let before = pooled.at(-1); before !== undefined && before.tpotMs > last.tpotMs; before = pooled.at(-1)) {
      last = joinKnots(before, last);
      pooled.pop();
    }
    pooled.push(last);
  }
  return pooled;
}

/** Interpolates linearly between knots. Below the first it is constant; above the last it continues the last slope. */
function interpolate(knots: readonly Knot[], underWay: number): number {
  if (knots.length === 1 || underWay <= knots[0]!.underWay) return knots[0]!.tpotMs;
  let upper = 1;
  while (upper < knots.length - 1 && knots[upper]!.underWay < underWay) upper++;
  const [low, high] = [knots[upper - 1]!, knots[upper]!];
  return low.tpotMs + ((underWay - low.underWay) / (high.underWay - low.underWay)) * (high.tpotMs - low.tpotMs);
}
