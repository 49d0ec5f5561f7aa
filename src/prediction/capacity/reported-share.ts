/**
 * The share of a server's requests that its samples are. Metrics count all requests under way, samples only those that
 * a gateway reported, so what arrived at the server is more than the samples add up to.
 */
import type { Observation } from '../schema/observation.ts';
import { countUnderWay } from './load-curve.ts';

/** Above it, the difference is that of a mean length of answers and a real one. */
const NEARLY_ALL = 0.7;
const LEAST = 0.01;

/** By Little's law: the time that the samples were under way, over the integral of all that was. */
export function measureReportedShare(samples: readonly Observation[], outputTokens: number): number {
  const stays = samples.map(({ ttftMs = 0, tpotMs = 0, outputTokens: own }) => ttftMs + (own || outputTokens) * tpotMs);
  const sum = stays.reduce((total, stay) => total + stay, 0);
  const longestGapMs = sum / Math.max(1, stays.length);
  const share = sum / integrateLoad(samples, longestGapMs);
  return share > NEARLY_ALL || Number.isNaN(share) ? 1 : Math.max(LEAST, share);
}

/** Gaps without samples count up to a bound: nothing is known of them, or a recording ended there. */
function integrateLoad(samples: readonly Observation[], longestGapMs: number): number {
  const timed = samples.filter(({ atMs }) => atMs !== undefined).sort((a, b) => a.atMs! - b.atMs!);
  let integral = 0;
  for (const [i, { atMs, input }] of timed.entries()) {
    const gapMs = i === 0 ? 0 : Math.min(longestGapMs, atMs! - timed[i - 1]!.atMs!);
    integral += countUnderWay(input) * gapMs;
  }
  return integral;
}
