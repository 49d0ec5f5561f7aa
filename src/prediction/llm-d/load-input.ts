/** Converts a row of llm-d into our input fields. */
import { fillMetrics, MAX_COUNT } from '../schema/input-fields.ts';
import type { ObservedInput } from '../schema/observation-event.ts';
import type { PredictionRow } from './read-rows.ts';

/** Values of the metrics that llm-d does not send. */
const UNKNOWN = fillMetrics(() => 0);

/** Converts a row to our fields. llm-d counts tokens in prefill and in decoding separately; a server works on both. */
export function toInput(row: PredictionRow): ObservedInput {
  return {
    ...UNKNOWN,
    podType: row.podType,
    inputTokenLength: row.inputTokenLength,
    prefixCacheScore: row.prefixCacheScore,
    numRequestWaiting: row.numRequestWaiting,
    numRequestRunning: row.numRequestRunning,
    kvCacheUsage: row.kvCacheUsage,
    inflightTokens: Math.min(MAX_COUNT, row.prefillTokensInFlight + row.decodeTokensInFlight),
    serverIp: row.endpoint,
  };
}
