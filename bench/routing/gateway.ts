/**
 * Builds a gateway's requests, and scores the answers as docs/how-to/route.md, "How a gateway should use the answer", says. It
 * knows only its own counts, scraped metrics, and the answers of Predict.
 */
import type { METRIC_COLUMNS } from '../../src/prediction/schema/columns.ts';
import { fillMetrics } from '../../src/prediction/schema/input-fields.ts';
import type { Candidate } from '../../src/prediction/simulator/simulate.ts';

/** A PredictInput without its ids. */
export type GatewayInput = Readonly<Record<(typeof METRIC_COLUMNS)[number], number>> & { readonly server: string };

export interface Answer {
  readonly ttftMs: number;
  readonly tpotMs: number;
}

/** Metrics are as old as their scrape, so the gateway adds the requests that it has sent since, from its own counts. */
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

/** The same request at the same server, if the server had no other request. */
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

/** People notice a wait for the first token more than the same time spread over the answer. */
const FIRST_TOKEN_WEIGHT = 6;

/** `loaded`: the prediction for the current load; `idle`: that of `withoutLoad()`. A lower score is better. */
export type ServerScore = (loaded: Answer, idle: Answer, candidate: Candidate, outputTokens: number) => number;

/**
 * Milliseconds that sending the request there costs it and all others: its own time, and what it adds to theirs. The others
 * wait while its prompt is computed, and stay longer for it, so that prompts of further requests delay them too. So each
 * millisecond of its own time costs them in proportion to how much longer their answers take than in an idle server. With
 * n = rate ⋅ time under way (Little 1961) and steps that lengthen in proportion to the rate, this is the marginal cost of a request.
 */
export const scoreServer: ServerScore = (loaded, idle, { underWay }, outputTokens) => {
  const own = FIRST_TOKEN_WEIGHT * loaded.ttftMs + outputTokens * loaded.tpotMs;
  const stretch = Math.max(1, loaded.tpotMs / idle.tpotMs);
  return own + underWay * idle.ttftMs * stretch;
};

/**
 * For gateways to which the slowest requests matter more than the median: each token lengthens the steps of all requests under way.
 * Together they made a token slower by `loaded − idle`, so one more request costs them this much in total per token (the
 * marginal cost of linear congestion, Pigou 1920). It keeps the load even, and fast servers less full.
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

/** Picks the best server; of equal ones the one with the fewest new requests, so that a burst between scrapes does not go to one server. */
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

/** The recent mean length of answers in tokens, since no gateway knows the length of the next one. */
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
