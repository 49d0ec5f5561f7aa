/**
 * How long a token takes at a server with n requests under way, learned from samples.
 *
 * A prediction says what a request meets that arrives at load n. During its answer the load returns towards its mean, so
 * a prediction at a high n is lower than the time per token while n stays that high: the regression dilution of a noisy
 * regressor. So each TPOT is held against the mean load while its answer was generated,
 *   n̄_i = 1/D_i ∫ n(t) dt over [t_i, t_i + D_i],  D_i = output tokens · TPOT_i,
 * where n(t) is what the samples of the server show one after the other. Prompts slow an answer down too, and in bursts
 * they come while n is still low. So log TPOT has a slope γ over the pace ρ̄_i of prompt tokens in the same span, fitted
 * among answers of about the same n̄, and the curve is the isotonic regression of TPOT · exp(−γ ρ̄) on n̄.
 */
import type { Observation } from '../schema/observation.ts';
import { countUnderWay } from './load-curve.ts';
import { countTokens } from './observed-ttfts.ts';

export interface TpotCurve {
  /** The median milliseconds for a token while so many are under way and prompts come at this pace. */
  at(underWay: number, tokensPerMs: number): number;
  /** The pace of prompts that was typical at about so many under way, and how far observed times were from the curve. */
  near(underWay: number): ObservedNear;
}

export interface ObservedNear {
  readonly tokensPerMs: number;
  /** Observed times over those of the curve, sorted. */
  readonly factors: Float64Array;
}

interface Point {
  readonly underWay: number;
  readonly tpotMs: number;
}

/** A point, and the pace at which prompt tokens arrived during the answer. */
interface Answer extends Point {
  readonly tokensPerMs: number;
}

export interface TpotCurveOptions {
  /** The mean length of an answer. */
  readonly outputTokens: number;
  /** The share of the server's requests that the samples are. */
  readonly reportedShare: number;
}

export const MIN_TPOT_SAMPLES = 40;

/** Undefined without enough samples. They must be of one server. */
export function fitTpotCurve(samples: readonly Observation[], options: TpotCurveOptions): TpotCurve | undefined {
  const answers = listAnswers(samples, options).sort((a, b) => a.underWay - b.underWay);
  if (answers.length < MIN_TPOT_SAMPLES) return undefined;
  const slope = fitPromptSlope(answers);
  const knots = makeIsotonic(
    joinPoints(answers.map((answer) => ({ ...answer, tpotMs: answer.tpotMs * Math.exp(-slope * answer.tokensPerMs) }))),
  );
  const at = (underWay: number, tokensPerMs: number) => interpolate(knots, underWay) * Math.exp(slope * tokensPerMs);
  const ranges = splitRanges(answers).map((range) => ({
    end: range.at(-1)!.underWay,
    tokensPerMs: meanPaceOf(range),
    factors: Float64Array.from(range, ({ underWay, tokensPerMs, tpotMs }) => tpotMs / at(underWay, tokensPerMs)).sort(),
  }));
  const last = ranges.at(-1)!;
  return { at, near: (underWay) => ranges.find(({ end }) => end >= underWay) ?? last };
}

function meanPaceOf(answers: readonly Answer[]): number {
  return answers.reduce((sum, { tokensPerMs }) => sum + tokensPerMs, 0) / answers.length;
}

/** Answers whose loads are about the same. */
const RANGE_ANSWERS = 150;

function splitRanges(sorted: readonly Answer[]): Answer[][] {
  const count = Math.max(1, Math.floor(sorted.length / RANGE_ANSWERS));
  return Array.from({ length: count }, (_, k) =>
    sorted.slice(Math.floor((k * sorted.length) / count), Math.floor(((k + 1) * sorted.length) / count)),
  );
}

/** By how much the logarithm of a TPOT rises with the pace of prompts, where as many are under way. */
function fitPromptSlope(sorted: readonly Answer[]): number {
  let [covariance, variance] = [0, 0];
  for (const range of splitRanges(sorted)) {
    const meanPace = meanPaceOf(range);
    for (const { tokensPerMs, tpotMs } of range) {
      covariance += (tokensPerMs - meanPace) * Math.log(tpotMs);
      variance += (tokensPerMs - meanPace) ** 2;
    }
  }
  return variance > 0 ? Math.max(0, covariance / variance) : 0;
}

function listAnswers(samples: readonly Observation[], { outputTokens, reportedShare }: TpotCurveOptions): Answer[] {
  return [...Map.groupBy(samples, ({ run }) => run).values()].flatMap((ofRun) => {
    const meanLoad = createMeanLoad(ofRun);
    const meanPace = createMeanPace(ofRun);
    return ofRun.flatMap(({ input, atMs, tpotMs }) => {
      if (tpotMs === undefined) return [];
      if (atMs === undefined) return [{ underWay: countUnderWay(input), tokensPerMs: 0, tpotMs }];
      const untilMs = atMs + outputTokens * tpotMs;
      const underWay = meanLoad(atMs, untilMs, countUnderWay(input));
      return [{ underWay, tokensPerMs: meanPace(atMs, untilMs) / reportedShare, tpotMs }];
    });
  });
}

/** Prompt tokens a millisecond that arrived in a span. */
function createMeanPace(samples: readonly Observation[]) {
  const arrivals = samples
    .flatMap(({ atMs, input }) => (atMs === undefined ? [] : [{ atMs, tokens: countTokens(input) }]))
    .sort((a, b) => a.atMs - b.atMs);
  const times = arrivals.map(({ atMs }) => atMs);
  const sums = [0];
  for (const { tokens } of arrivals) sums.push(sums.at(-1)! + tokens);
  const lastMs = times.at(-1) ?? 0;
  return (fromMs: number, toMs: number): number => {
    const untilMs = Math.min(toMs, lastMs);
    if (untilMs <= fromMs) return 0;
    return (sums[countUntil(times, untilMs)]! - sums[countUntil(times, fromMs)]!) / (untilMs - fromMs);
  };
}

function countUntil(times: readonly number[], ms: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The mean of n over a span, by the integral of the steps between samples. */
function createMeanLoad(samples: readonly Observation[]) {
  const steps = samples
    .flatMap(({ atMs, input }) => (atMs === undefined ? [] : [{ atMs, underWay: countUnderWay(input) }]))
    .sort((a, b) => a.atMs - b.atMs);
  const integrals = new Float64Array(steps.length);
  for (let i = 1; i < steps.length; i++)
    integrals[i] = integrals[i - 1]! + steps[i - 1]!.underWay * (steps[i]!.atMs - steps[i - 1]!.atMs);

  function integralTo(atMs: number): number {
    let [low, high] = [0, steps.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle]!.atMs <= atMs) low = middle + 1;
      else high = middle;
    }
    const before = steps[low - 1];
    return before === undefined ? 0 : integrals[low - 1]! + before.underWay * (atMs - before.atMs);
  }

  const lastMs = steps.at(-1)?.atMs ?? 0;
  return (fromMs: number, toMs: number, fallback: number): number => {
    const untilMs = Math.min(toMs, lastMs);
    return untilMs <= fromMs ? fallback : (integralTo(untilMs) - integralTo(fromMs)) / (untilMs - fromMs);
  };
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
    knots.push({ underWay, tpotMs: times[times.length >> 1]!, weight: part.length });
  }
  return knots;
}

/** Pools neighbours that fall, as more load never makes a token faster (Ayer et al. 1955). */
function makeIsotonic(knots: readonly Knot[]): Knot[] {
  const pooled: Knot[] = [];
  for (const knot of knots) {
    let last = knot;
    for (let before = pooled.at(-1); before !== undefined && before.tpotMs > last.tpotMs; before = pooled.at(-1)) {
      const weight = before.weight + last.weight;
      const mean = (a: number, b: number) => (a * before.weight + b * last.weight) / weight;
      last = { underWay: mean(before.underWay, last.underWay), tpotMs: mean(before.tpotMs, last.tpotMs), weight };
      pooled.pop();
    }
    pooled.push(last);
  }
  return pooled;
}

/** Straight between knots, and on at the last slope. */
function interpolate(knots: readonly Knot[], underWay: number): number {
  if (knots.length === 1 || underWay <= knots[0]!.underWay) return knots[0]!.tpotMs;
  let upper = 1;
  while (upper < knots.length - 1 && knots[upper]!.underWay < underWay) upper++;
  const [low, high] = [knots[upper - 1]!, knots[upper]!];
  return low.tpotMs + ((underWay - low.underWay) / (high.underWay - low.underWay)) * (high.tpotMs - low.tpotMs);
}
