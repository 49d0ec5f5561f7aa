/**
 * How many requests a server can have under way while limits hold: the largest n at which two quantiles stay below their limits,
 * that of the predicted TTFT T(x, L(n)) over prompts x at the load L(n), and that of the TPOT f · P(n). No arrivals are simulated,
 * so it costs milliseconds, and can be repeated while the server serves.
 */
import { type LatencyLimits, quantileOf } from './search-rates.ts';
import type { QueuePool, QueueServer } from './simulate-queue.ts';

/** How many prompts are taken, evenly from all, and at which ranks the distribution of the TTFT of each is read. */
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
