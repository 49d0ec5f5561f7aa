/** Computes means over a span of time from samples: the pace of prompt tokens, and the load of a server. */
import type { Observation } from '../schema/observation.ts';
import { countUnderWay } from './load-curve.ts';
import { computePrompt } from './prompt-queue.ts';
import { countUncached } from './prompt-times.ts';

/** Returns a function for the mean rate at which prompt tokens were computed in a span of time, in tokens a millisecond. */
export function createMeanPace(samples: readonly Observation[]) {
  const { times, sums } = listComputed(samples);
  const countUntilMs = (ms: number): number => {
    const next = countUntil(times, ms);
    if (next === 0) return 0;
    if (next === times.length) return sums.at(-1)!;
    const share = (ms - times[next - 1]!) / (times[next]! - times[next - 1]!);
    return sums[next - 1]! + share * (sums[next]! - sums[next - 1]!);
  };
  const lastMs = times.at(-1) ?? 0;
  return (fromMs: number, toMs: number): number => {
    const untilMs = Math.min(toMs, lastMs);
    return untilMs <= fromMs ? 0 : (countUntilMs(untilMs) - countUntilMs(fromMs)) / (untilMs - fromMs);
  };
}

/** Lists how many prompt tokens were computed up to some times, in order; between them, the count is linear. */
function listComputed(samples: readonly Observation[]) {
  const times: number[] = [];
  const sums: number[] = [];
  let sum = 0;
  let busyUntilMs = Number.NEGATIVE_INFINITY;
  for (const { atMs, input, ttftMs } of samples.toSorted((a, b) => (a.atMs ?? 0) - (b.atMs ?? 0))) {
    if (atMs === undefined || ttftMs === undefined) continue;
    const { startMs, tokens, firstTokenMs } = computePrompt(atMs, busyUntilMs, {
      tokens: countUncached(input),
      firstTokenMs: atMs + ttftMs,
    });
    busyUntilMs = Math.max(startMs, firstTokenMs);
    times.push(startMs, busyUntilMs);
    sums.push(sum, sum + tokens);
    sum += tokens;
  }
  return { times, sums };
}

/** Returns a function for the mean of n over a span of time, by the integral of the steps between samples. */
export function createMeanLoad(samples: readonly Observation[]) {
  const steps = samples
    .flatMap(({ atMs, input }) => (atMs === undefined ? [] : [{ atMs, underWay: countUnderWay(input) }]))
    .sort((a, b) => a.atMs - b.atMs);
  const times = steps.map(({ atMs }) => atMs);
  const integrals = new Float64Array(steps.length);
  for (let i = 1; i < steps.length; i++)
    integrals[i] = integrals[i - 1]! + steps[i - 1]!.underWay * (steps[i]!.atMs - steps[i - 1]!.atMs);

  function integralTo(atMs: number): number {
    const next = countUntil(times, atMs);
    const before = steps[next - 1];
    return before === undefined ? 0 : integrals[next - 1]! + before.underWay * (atMs - before.atMs);
  }

  const lastMs = times.at(-1) ?? 0;
  return (fromMs: number, toMs: number, fallback: number): number => {
    const untilMs = Math.min(toMs, lastMs);
    return untilMs <= fromMs ? fallback : (integralTo(untilMs) - integralTo(fromMs)) / (untilMs - fromMs);
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
