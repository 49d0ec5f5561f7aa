/** What a router knows of its servers, and the score of docs/how-to/route.md. */
import type { Input, Output } from './messages.ts';

/** Weight of the time to the first token beside the rest of the answer. */
const TTFT_WEIGHT = 6;
/** Scores this close count as equal. */
const TIE = 1.05;
/** A server that got none of this many requests for each server gets the next one, so that it is measured again. */
const EXPLORE_AFTER = 50;

export interface Metrics {
  /** Length of the queue. */
  readonly waiting: number;
  /** Share of the KV cache in use, 0 to 1. */
  readonly kvCacheUsage: number;
}

interface Server {
  metrics: Metrics | undefined;
  sentSinceMetrics: number;
  underWay: number;
  tokens: number;
  lastSent: number;
}

export interface Load {
  setMetrics(address: string, metrics: Metrics): void;
  /** Each candidate twice: input i is candidate i as loaded as it is, input i + n the same candidate idle. */
  ask(promptTokens: number, candidates: readonly string[]): Input[];
  /**
   * Chooses a candidate that was not chosen for long, so that it is measured again. Otherwise, of the candidates within 5 % of the
   * least score, it chooses the one that got the fewest requests since its last metrics. It chooses no candidate without an answer,
   * and returns undefined when none has one.
   */
  choose(candidates: readonly string[], outputs: readonly Output[]): number | undefined;
  /** The best candidate without predictions: the fewest requests, waiting and under way. */
  chooseLeastLoaded(candidates: readonly string[]): number;
  /** Counts a request as under way; the function that it returns counts its end. */
  dispatch(address: string, promptTokens: number): (outputTokens: number) => void;
}

export function createLoad(): Load {
  const servers = new Map<string, Server>();
  let sent = 0;
  let meanOutputTokens = 200;

  function of(address: string): Server {
    const known = servers.get(address);
    if (known !== undefined) return known;
    const server = { metrics: undefined, sentSinceMetrics: 0, underWay: 0, tokens: 0, lastSent: sent };
    servers.set(address, server);
    return server;
  }

  function score(loaded: Output | undefined, idle: Output | undefined, underWay: number): number {
    if (loaded === undefined || idle === undefined) return Infinity;
    const own = TTFT_WEIGHT * loaded.predictedTtftMillis + meanOutputTokens * loaded.predictedTpotMillis;
    const isKnown = idle.predictedTpotMillis > 0;
    const slowdown = isKnown ? Math.max(1, loaded.predictedTpotMillis / idle.predictedTpotMillis) : 1;
    return own + underWay * idle.predictedTtftMillis * slowdown;
  }

  return {
    setMetrics(address, metrics) {
      Object.assign(of(address), { metrics, sentSinceMetrics: 0 });
    },
    ask(promptTokens, candidates) {
      const idle = candidates.map((serverIp, index) => ({
        inputId: candidates.length + index,
        serverIp,
        inputTokenLength: promptTokens,
      }));
      return [...idle.map((input, index) => ({ ...input, inputId: index, ...describe(of(input.serverIp)) })), ...idle];
    },
    choose(candidates, outputs) {
      const count = candidates.length;
      const byId = new Map(outputs.map((output) => [output.inputId, output]));
      const scores = candidates.map((one, index) => score(byId.get(index), byId.get(index + count), of(one).underWay));
      const least = Math.min(...scores);
      if (least === Infinity) return undefined;
      const neglected = candidates.findIndex(
        (one, index) => scores[index]! < Infinity && sent - of(one).lastSent > EXPLORE_AFTER * count,
      );
      if (neglected >= 0) return neglected;
      return findLeast(candidates, (one, index) => (scores[index]! <= least * TIE ? of(one).sentSinceMetrics : Infinity));
    },
    chooseLeastLoaded: (candidates) =>
      findLeast(candidates, (one) => (of(one).metrics?.waiting ?? 0) + of(one).underWay),
    dispatch(address, promptTokens) {
      const server = of(address);
      server.lastSent = ++sent;
      server.sentSinceMetrics++;
      server.underWay++;
      server.tokens += promptTokens;
      return (outputTokens) => {
        server.underWay--;
        server.tokens -= promptTokens;
        if (outputTokens > 0) meanOutputTokens += (outputTokens - meanOutputTokens) / 100;
      };
    },
  };
}

/** The load of a server: fresh counts of what was sent, beside metrics that are older. */
function describe({ metrics, sentSinceMetrics, underWay, tokens }: Server): Partial<Input> {
  const load = { numRequestRunning: underWay, inflightTokens: tokens };
  if (metrics === undefined) return load;
  const numRequestWaiting = metrics.waiting + Math.min(sentSinceMetrics, underWay);
  return { ...load, numRequestWaiting, kvCacheUsage: metrics.kvCacheUsage };
}

function findLeast(candidates: readonly string[], measure: (candidate: string, index: number) => number): number {
  const values = candidates.map(measure);
  return values.indexOf(Math.min(...values));
}
