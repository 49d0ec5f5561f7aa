/** Decides how much an observed TPOT counts, by the length of the answer. */
import type { PredictionTarget } from './observation-table.ts';

/** The time per token of an answer with this many tokens after the first is half as certain as that of a very long one. */
const HALF_TOKENS = 2;

/**
 * How much an observed time counts, from 0 to 1. The time per token of an answer of two or three tokens is mostly the
 * jitter of a network and of a single step; a first token, and an answer of unknown length, count fully.
 */
export function certaintyOf(target: PredictionTarget, outputTokens: number | undefined): number {
  if (target === 'ttft' || outputTokens === undefined || !(outputTokens > 1)) return 1;
  return (outputTokens - 1) / (outputTokens - 1 + HALF_TOKENS);
}
