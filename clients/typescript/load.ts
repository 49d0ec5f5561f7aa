/** Counts requests under way, and chooses a server by the score of docs/how-to/route.md. */
import type { Input, Output } from './messages.ts';
import { canBeTrue, createServers, type Metrics, type Server, type ServersOptions } from './servers.ts';

/** Weight of the time to the first token relative to the rest of the answer. */
const TTFT_WEIGHT = 6;
/** Scores this close count as equal. */
const TIE = 1.05;
/** A server that got none of the last EXPLORE_AFTER × (number of servers) requests gets the next one, so that it is measured again. */
const EXPLORE_AFTER = 50;

export interface Load {
  /** Ignores impossible metrics. */
  setMetrics(address: string, metrics: Metrics): void;
  /** Returns two inputs for each candidate: input i is candidate i with its present load, input i + n the same candidate idle. */
  ask(promptTokens: number, candidates: readonly string[]): Input[];
  /**
   * Chooses a candidate that was not chosen for a long time, so that it is measured again. Otherwise, of the candidates within 5 %
   * of the least score, it chooses the one with the fewest requests since its last metrics. It does not choose a candidate without
   * an answer, nor one with old metrics unless all have old ones, and returns undefined when no other is left.
   */
  choose(candidates: readonly string[], outputs: readonly Output[]): number | undefined;
  /**
   * Chooses without predictions: the fewest requests, waiting and under way. It does not choose a candidate with old metrics unless
   * all have old ones.
   */
  chooseLeastLoaded(candidates: readonly string[]): number;
  /** Counts a request as under way; the function that it returns counts its end. */
  dispatch(address: string, promptTokens: number): (outputTokens: number) => void;
}

export function createLoad(options: ServersOptions): Load {
  const servers = createServers(options);
  let sent = 0;
  let meanOutputTokens = 200;

  function of(address: string): Server {
    return servers.of(address, sent);
  }

  function scoreAll(candidates: readonly string[], outputs: readonly Output[]): number[] {
    const byId = new Map(outputs.map((output) => [output.inputId, output]));
    const old = findOld(candidates, (one) => servers.hasOldMetrics(of(one)));
    return candidates.map((one, index) => {
      const [loaded, idle] = [byId.get(index), byId.get(index + candidates.length)];
      if (loaded === undefined || idle === undefined || old.has(one)) return Infinity;
      return score({ loaded, idle, underWay: of(one).underWay, tokens: meanOutputTokens });
    });
  }

  return {
    setMetrics(address, metrics) {
      if (!canBeTrue(metrics)) return;
      const server = of(address);
      Object.assign(server, { metrics, readMs: server.usedMs, sentSinceMetrics: 0 });
    },
    ask(promptTokens, candidates) {
      servers.forgetUnused();
      const idle = candidates.map((one, index) => createInput(candidates.length + index, one, promptTokens));
      return [
        ...idle.map((input, index) => ({ ...input, inputId: index, ...servers.describe(of(input.serverIp)) })),
        ...idle,
      ];
    },
    choose(candidates, outputs) {
      const scores = scoreAll(candidates, outputs);
      const least = Math.min(...scores);
      if (least === Infinity) return undefined;
      const neglected = candidates.findIndex(
        (one, index) => scores[index]! < Infinity && sent - of(one).lastSent > EXPLORE_AFTER * candidates.length,
      );
      if (neglected >= 0) return neglected;
      return findLeast(candidates, (one, index) =>
        scores[index]! <= least * TIE ? of(one).sentSinceMetrics : Infinity,
      );
    },
    chooseLeastLoaded(candidates) {
      const old = findOld(candidates, (one) => servers.hasOldMetrics(of(one)));
      return findLeast(candidates, (one) => (old.has(one) ? Infinity : servers.countRequests(of(one))));
    },
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

function createInput(inputId: number, serverIp: string, inputTokenLength: number): Input {
  return { inputId, serverIp, inputTokenLength };
}

/** Finds the candidates with old metrics, because a dead server would look idle. Returns none if all are old. */
function findOld(candidates: readonly string[], isOld: (candidate: string) => boolean): ReadonlySet<string> {
  const old = candidates.filter(isOld);
  return new Set(old.length < candidates.length ? old : []);
}

interface Scored {
  readonly loaded: Output;
  readonly idle: Output;
  readonly underWay: number;
  /** The running mean of output tokens. */
  readonly tokens: number;
}

function score({ loaded, idle, underWay, tokens }: Scored): number {
  const own = TTFT_WEIGHT * loaded.predictedTtftMillis + tokens * loaded.predictedTpotMillis;
  const isKnown = idle.predictedTpotMillis > 0;
  const slowdown = isKnown ? Math.max(1, loaded.predictedTpotMillis / idle.predictedTpotMillis) : 1;
  const total = own + underWay * idle.predictedTtftMillis * slowdown;
  return Number.isNaN(total) ? Infinity : total;
}

/** Returns the index of the first candidate with the least value. */
function findLeast(candidates: readonly string[], measure: (candidate: string, index: number) => number): number {
  const values = candidates.map(measure);
  return values.reduce((least, value, index) => (value < values[least]! ? index : least), 0);
}
