/**
 * How many requests a server can have under way while limits hold: the largest n for which the quantiles of
 * T(x, L(n)) over prompts x, and of f · P(n), stay below. It takes no arrivals, so it costs milliseconds and follows a
 * server while it serves.
 */
import { type LatencyLimits, quantileOf } from './search-rates.ts';
import type { QueuePool, QueueServer } from './simulate-queue.ts';

/** Prompts of the mixture, evenly chosen from all, and ranks of the distribution of each. */
const PROMPTS = 32;
const RANKS = [0.1, 0.3, 0.5, 0.7, 0.9, 0.97] as const;

/** At most the highest load in the samples of the server; 0 if even an idle server breaks a limit. */
export function findConcurrency(pool: QueuePool, server: QueueServer, limits: LatencyLimits): number {
  const keeps = (underWay: number) => keepsLimits(pool, { server, underWay }, limits);
  if (!keeps(0)) return 0;
  let [good, bad] = [0, Math.ceil(server.load.seen) + 1];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (keeps(middle)) good = middle;
    else bad = middle;
  }
  return good;
}

interface At {
  readonly server: QueueServer;
  readonly underWay: number;
}

function keepsLimits(pool: QueuePool, { server, underWay }: At, { ttftMs, tpotMs, quantile }: LatencyLimits): boolean {
  const { promptTokensPerMs, factors } = server.tpot.near(underWay);
  if (tpotMs !== undefined && quantileOf(factors, quantile) * server.tpot.at(underWay, promptTokensPerMs) > tpotMs)
    return false;
  return ttftMs === undefined || quantileOf(listTtfts(pool, { server, underWay }), quantile) <= ttftMs;
}

function listTtfts({ model }: QueuePool, { server, underWay }: At): Float64Array {
  const load = server.load.at(underWay);
  const prompts = server.requests;
  const count = Math.min(PROMPTS, prompts.length);
  const times = Array.from({ length: count }, (_, i) => prompts[Math.floor((i * prompts.length) / count)]!).flatMap(
    (prompt) => {
      const medianMs = model.predictTtft(server.name, { ...prompt, ...load });
      return RANKS.map((rank) => model.spreadTtft(medianMs, rank));
    },
  );
  return Float64Array.from(times).sort();
}
