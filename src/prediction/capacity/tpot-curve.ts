/**
 * How long a token takes at a server with n requests under way, learned from samples.
 *
 * A prediction says what a request meets that arrives at load n. During its answer the load returns towards its mean, so
 * a prediction at a high n is lower than the time per token while n stays that high: the regression dilution of a noisy
 * regressor. So each TPOT is held against the mean load while its answer was generated,
 *   n̄_i = 1/D_i ∫ n(t) dt over [t_i, t_i + D_i],  D_i = output tokens · TPOT_i,
 * where n(t) is what the samples of the server show one after the other. The curve is the isotonic regression of TPOT on n̄.
 */
import type { Observation } from '../schema/observation.ts';
import { countUnderWay } from './load-curve.ts';

export interface TpotCurve {
  /** The median milliseconds for a token while so many are under way. */
  at(underWay: number): number;
  /** How far observed times were from the curve, as factors, sorted. */
  readonly factors: Float64Array;
}

interface Point {
  readonly underWay: number;
  readonly tpotMs: number;
}

export const MIN_TPOT_SAMPLES = 40;

/** Undefined without enough samples. They must be of one server. */
export function fitTpotCurve(samples: readonly Observation[], outputTokens: number): TpotCurve | undefined {
  const points = listPoints(samples, outputTokens).sort((a, b) => a.underWay - b.underWay);
  if (points.length < MIN_TPOT_SAMPLES) return undefined;
  const knots = makeIsotonic(joinPoints(points));
  const at = (underWay: number) => interpolate(knots, underWay);
  return { at, factors: Float64Array.from(points, (point) => point.tpotMs / at(point.underWay)).sort() };
}

function listPoints(samples: readonly Observation[], outputTokens: number): Point[] {
  const meanLoad = createMeanLoad(samples);
  return samples.flatMap(({ input, atMs, tpotMs }) => {
    if (tpotMs === undefined) return [];
    const underWay =
      atMs === undefined ? countUnderWay(input) : meanLoad(atMs, atMs + outputTokens * tpotMs, countUnderWay(input));
    return [{ underWay, tpotMs }];
  });
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
