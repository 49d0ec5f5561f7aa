/**
 * What a gateway asks, and what it makes of the answer: the score of docs/prediction.md, "How a gateway should use the
 * answer". It knows nothing but its own counts, scraped metrics, and what Predict says.
 */
import type { METRIC_COLUMNS } from '../../src/prediction/columns.ts';
import type { Random } from '../../src/prediction/simulator/random.ts';
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
    ...metrics,
    server,
    numRequestRunning: underWay,
    numRequestWaiting: metrics.numRequestWaiting + sentSinceScrape,
    hbmUtilization: 0,
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
const FIRST_TOKEN_WEIGHT = 2;

/**
 * Milliseconds that sending the request there costs it and all others: its own time, and what it adds to theirs. They
 * wait while its prompt is computed; and while answers are written, the step of n requests costs more than that of one
 * by about n times what each of them adds, which is what this one adds to all of theirs.
 */
export function scoreServer(loaded: Answer, idle: Answer, { underWay }: Candidate, outputTokens: number): number {
  const own = FIRST_TOKEN_WEIGHT * loaded.ttftMs + outputTokens * loaded.tpotMs;
  const others = underWay * idle.ttftMs + outputTokens * Math.max(0, loaded.tpotMs - idle.tpotMs);
  return own + others;
}

/** Scores this close to the least one are equal. */
const TOLERANCE = 0.05;
/** So many requests go anywhere: a server that was thought slow once would never be seen again. */
const EXPLORED_SHARE = 0.02;

/** Of equals, the one with the fewest new requests, so that a burst does not go to one server between two scrapes. */
export function pickServer(scores: readonly number[], candidates: readonly Candidate[], random: Random): number {
  if (random() < EXPLORED_SHARE) return Math.floor(random() * scores.length);
  const limit = Math.min(...scores) * (1 + TOLERANCE);
  const near = scores.flatMap((score, index) => (score <= limit ? index : []));
  return near.reduce((best, index) => (isPreferred(index, best) ? index : best));

  function isPreferred(index: number, best: number): boolean {
    const more = candidates[index]!.sentSinceScrape - candidates[best]!.sentSinceScrape;
    return more < 0 || (more === 0 && scores[index]! < scores[best]!);
  }
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
