/**
 * Estimates the share of a server's requests that was reported. Metrics count all requests under way, but samples exist only for
 * reported requests, so more requests may have arrived at the server than there are samples.
 */
import type { Observation } from '../schema/observation.ts';
import { countUnderWay } from './load-curve.ts';

/** A larger share counts as all: the difference may come from assuming the mean length for answers of unknown length. */
const NEARLY_ALL = 0.7;
const LEAST = 0.01;

/** Divides the time that the sampled requests were under way by the integral of all requests under way (Little's law). */
export function measureReportedShare(samples: readonly Observation[], outputTokens: number): number {
  const stays = samples.map(({ ttftMs = 0, tpotMs = 0, outputTokens: own }) => ttftMs + (own || outputTokens) * tpotMs);
  const sum = stays.reduce((total, stay) => total + stay, 0);
  const longestGapMs = sum / Math.max(1, stays.length);
  const share = sum / integrateLoad(samples, longestGapMs);
  return share > NEARLY_ALL || Number.isNaN(share) ? 1 : Math.max(LEAST, share);
}

/** Gaps without samples count up to a bound: a recording may have ended there. */
function integrateLoad(samples: readonly Observation[], longestGapMs: number): number {
  const timed = samples.filter(({ atMs }) => atMs !== undefined).sort((a, b) => a.atMs! - b.atMs!);
  let integral = 0;
  for (const [i, { atMs, input }] of timed.entries()) {
    const gapMs = i === 0 ? 0 : Math.min(longestGapMs, atMs! - timed[i - 1]!.atMs!);
    integral += countUnderWay(input) * gapMs;
  }
  return integral;
}
