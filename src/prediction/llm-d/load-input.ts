import type { ObservedInput } from '../schema/observation-event.ts';
import type { PredictionRow } from './read-rows.ts';

/** A row in our own words. llm-d counts the tokens of both phases apart; a server works on all of them. */
export function toInput(row: PredictionRow): ObservedInput {
  return {
    podType: row.podType,
    inputTokenLength: row.inputTokenLength,
    prefixCacheScore: row.prefixCacheScore,
    numRequestWaiting: row.numRequestWaiting,
    numRequestRunning: row.numRequestRunning,
    kvCacheUsage: row.kvCacheUsage,
    inflightTokens: row.prefillTokensInFlight + row.decodeTokensInFlight,
    hbmUtilization: 0,
    aiCoreUtilization: 0,
    bandwidthUtilization: 0,
    serverIp: row.endpoint,
  };
}
