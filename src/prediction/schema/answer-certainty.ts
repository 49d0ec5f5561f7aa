/** Decides by the length of an answer whether it has a TPOT, and how much that counts. */
import type { PredictionTarget } from './observation-table.ts';

/** The time per token of an answer with this many tokens after the first is half as certain as that of a very long one. */
const HALF_TOKENS = 2;

/**
 * The TPOT of an answer, undefined for an answer of one token: none follows the first. Callers that divide by max(1, tokens − 1)
 * report the time until the stream was closed in its place.
 */
export function findTpot(tpotMs: number | undefined, outputTokens: number | undefined): number | undefined {
  return outputTokens === 1 ? undefined : tpotMs;
}

/**
 * How much an observed time counts, from 0 to 1. The time per token of an answer of two or three tokens is mostly the
 * jitter of a network and of a single step; a first token, and an answer of unknown length, count fully.
 */
export function certaintyOf(target: PredictionTarget, outputTokens: number | undefined): number {
  if (target === 'ttft' || !outputTokens) return 1;
  const furtherTokens = Math.max(0, outputTokens - 1);
  return furtherTokens / (furtherTokens + HALF_TOKENS);
}
