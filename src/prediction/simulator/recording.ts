/** Writes a simulated request as a line of a real recording. */
import type { SimulatedObservation } from './simulate.ts';

/** The default start of a simulation, because a recording has times of day. */
export const DEFAULT_START = '2026-01-01T00:00:00.000Z';

/** Returns an observation in our format: the candidate as the gateway saw it, and the observed times. */
export function toObservationLine(
  { candidate, outcome, ttftMs, tpotMs }: SimulatedObservation,
  originMs: number,
): object {
  return {
    at: originMs + Math.round(outcome.dispatchedMs),
    server_ip: candidate.server,
    input_token_length: candidate.inputTokenLength,
    prefix_cache_score: candidate.prefixCacheScore,
    num_request_waiting: candidate.numRequestWaiting,
    num_request_running: candidate.numRequestRunning,
    kv_cache_usage: candidate.kvCacheUsage,
    inflight_tokens: candidate.inflightTokens,
    ai_core_utilization: candidate.aiCoreUtilization,
    bandwidth_utilization: candidate.bandwidthUtilization,
    ttft_millis: ttftMs,
    ...(tpotMs === undefined ? {} : { tpot_millis: tpotMs }),
    output_tokens: outcome.request.outputTokens,
  };
}

/**
 * Returns a line of a request-level log, which has no metrics. `run` names the recording; the cached tokens are those that the
 * gateway expected when it chose.
 */
export function toRequestLine(
  { candidate, outcome }: SimulatedObservation,
  { run, originMs }: { readonly run: string; readonly originMs: number },
): object {
  const at = (ms: number) => Math.round(1000 * (originMs + ms)) / 1000;
  return {
    run,
    server: candidate.server,
    start_ms: at(outcome.dispatchedMs),
    first_token_ms: at(outcome.firstTokenMs),
    end_ms: at(outcome.finishedMs),
    input_tokens: outcome.request.inputTokens,
    cached_tokens: Math.round(candidate.prefixCacheScore * outcome.request.inputTokens),
    output_tokens: outcome.request.outputTokens,
  };
}
