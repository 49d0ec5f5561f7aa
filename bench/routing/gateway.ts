/**
 * What a gateway asks, and what it makes of the answer: the score of docs/how-to/route.md, "How a gateway should use the
 * answer". It knows nothing but its own counts, scraped metrics, and what Predict says.
 */
import type { METRIC_COLUMNS } from '../../src/prediction/schema/columns.ts';
import { fillMetrics } from '../../src/prediction/schema/input-fields.ts';
import type { Candidate } from '../../src/prediction/simulator/simulate.ts';

/** A PredictInput without its numbers of order. */
export type GatewayInput = Readonly<Record<(typeof METRIC_COLUMNS)[number], number>> & { readonly server: string };

export interface Answer {
  readonly ttftMs: number;
  readonly tpotMs: number;
}

/** Metrics are old by the time of a scrape: what the gateway sent since then is added from its own counts. */
export function describeInput(candidate: Candidate): GatewayInput {
  const { server, underWay, sentSinceScrape, ...metrics } = candidate;
  return {
    ...fillMetrics(() => 0),
    ...metrics,
    server,
    numRequestRunning: underWay,
    numRequestWaiting: metrics.numRequestWaiting + sentSinceScrape,
  };
}

/** The same request at the same server, if nothing else were there. */
export function withoutLoad(input: GatewayInput): GatewayInput {
  return {
    ...input,
    numRequestWaiting: 0,
    numRequestRunning: 0,
    kvCacheUsage: 0,
    inflightTokens: 0,
    aiCoreUtilization: 0,
    bandwidthUtilization: 0,
  };
}

/** A wait for the first token is felt more than the same time spread over the answer. */
const FIRST_TOKEN_WEIGHT = 6;

/** `loaded`: what Predict says now; `idle`: of `withoutLoad()`. Less is better. */
export type ServerScore = (loaded: Answer, idle: Answer, candidate: Candidate, outputTokens: number) => number;

/**
 * Milliseconds that sending the request there costs it and all others: its own time, and what it adds to theirs. They
 * wait while its prompt is computed, and are there longer for it, when the prompts of others come too: so each
 * millisecond of its own costs them as many as their answers take longer than in an idle server. With n = rate ⋅ time
 * under way (Little 1961) and steps that lengthen in proportion to the rate, that is what one request more adds.
 */
export const scoreServer: ServerScore = (loaded, idle, { underWay }, outputTokens) => {
  const own = FIRST_TOKEN_WEIGHT * loaded.ttftMs + outputTokens * loaded.tpotMs;
  const stretch = Math.max(1, loaded.tpotMs / idle.tpotMs);
  return own + underWay * idle.ttftMs * stretch;
};

/**
 * For whom the slowest requests count more than the median: each token lengthens the steps of all who are there too. All
 * of them together made a token slower by `loaded − idle`, so one more costs them that much a token, added up (the
 * marginal cost of a congestion that grows linearly, Pigou 1920). It keeps the load even, and fast servers less full.
 */
export const scoreForTails: ServerScore = (loaded, idle, { underWay }, outputTokens) => {
  const own = FIRST_TOKEN_WEIGHT * loaded.ttftMs + outputTokens * loaded.tpotMs;
  return own + underWay * idle.ttftMs + outputTokens * Math.max(0, loaded.tpotMs - idle.tpotMs);
};

/** Scores this close to the least one are equal. */
const TOLERANCE = 0.05;
/** After this many requests per server, a server that got none gets the next: otherwise a wrong estimate would never be corrected. */
const REQUESTS_UNHEARD = 50;

export type ServerPicker = (scores: readonly number[], candidates: readonly Candidate[]) => number;

/** Picks the best server; of equal ones that with the fewest new requests, so that a burst does not go to one server between two scrapes. */
export function createServerPicker(): ServerPicker {
  const pickedAt = new Map<string, number>();
  let picked = 0;

  function pick(scores: readonly number[], candidates: readonly Candidate[]): number {
    const unheard = candidates.findIndex(
      ({ server }) =>
        picked - (pickedAt.get(server) ?? Number.NEGATIVE_INFINITY) > REQUESTS_UNHEARD * candidates.length,
    );
    if (unheard !== -1) return unheard;
    const limit = Math.min(...scores) * (1 + TOLERANCE);
    const near = scores.flatMap((score, index) => (score <= limit ? index : []));
    return near.reduce((best, index) => {
      const more = candidates[index]!.sentSinceScrape - candidates[best]!.sentSinceScrape;
      return more < 0 || (more === 0 && scores[index]! < scores[best]!) ? index : best;
    });
  }

  return (scores, candidates) => {
    const index = pick(scores, candidates);
    pickedAt.set(candidates[index]!.server, ++picked);
    return index;
  };
}

export interface LengthEstimate {
  mean(): number;
  observe(outputTokens: number): void;
}

/** How long answers have been lately, in tokens: no gateway knows the next one's. */
export function estimateLength(): LengthEstimate {
  let sum = 200;
  let count = 1;
  return {
    mean: () => sum / count,
    observe(outputTokens) {
      sum = 0.99 * sum + outputTokens;
      count = 0.99 * count + 1;
    },
  };
}
