/** Decides by the length of an answer whether it has a TPOT, and how much that counts. */
import type { PredictionTarget } from './observation-table.ts';

/** With this many tokens after the first, the TPOT of an answer is half as certain as that of a very long one. */
const HALF_TOKENS = 2;

/**
 * Returns the TPOT of an answer; undefined for an answer of one token, which has no further token. Callers that divide by
 * max(1, tokens − 1) report the time until the stream was closed in its place.
 */
export function findTpot(tpotMs: number | undefined, outputTokens: number | undefined): number | undefined {
  return outputTokens === 1 ? undefined : tpotMs;
}

/**
 * Returns the weight of an observed time, from 0 to 1. The TPOT of an answer of two or three tokens is mostly jitter of the network
 * and of single steps. TTFT, and the TPOT of an answer of unknown length, count fully.
 */
export function certaintyOf(target: PredictionTarget, outputTokens: number | undefined): number {
  if (target === 'ttft' || !outputTokens) return 1;
  const furtherTokens = Math.max(0, outputTokens - 1);
  return furtherTokens / (furtherTokens + HALF_TOKENS);
}
