/**
 * Finds how many requests a server can have under way while limits of TTFT and TPOT hold. It is the largest n up to which two
 * quantiles stay below their limits, that of the predicted TTFT T(x, L(n)) over prompts x at the load L(n), and that of the TPOT
 * f · P(n). No arrivals are simulated, so it takes milliseconds and can be repeated while the service answers calls.
 */
import { type LatencyLimits, quantileOf } from './search-rates.ts';
import type { ServiceModel } from './service-model.ts';
import type { QueueServer } from './simulate-queue.ts';

/** How many prompts are picked, evenly spaced among all samples. */
const PROMPTS = 32;

/** Times are extrapolated up to this many times the highest load of the samples. */
const EXTRAPOLATED = 2;

type LoadedServer = Pick<QueueServer, 'name' | 'load' | 'tpot' | 'requests'>;

/**
 * Returns at most twice the highest load in the samples of the server; 0 if even an idle server breaks a limit. Without this
 * extrapolation, a server that hardly ever had two requests at once would count as full with one.
 */
export function findConcurrency(model: ServiceModel, server: LoadedServer, limits: LatencyLimits): number {
  // With more requests under way, no metric decreases, so the TTFT limit stays broken above the first load that breaks it.
  const breaksTtft = (underWay: number) => !keepsTtft(model, { server, underWay }, limits);
  return Math.max(0, findFirst([0, findFirstBroken(server, limits)], breaksTtft) - 1);
}

/** Finds the fewest requests that break the TPOT limit or fill the cache. TPOT rises within a range, but may scatter less in the next. */
function findFirstBroken(server: LoadedServer, limits: LatencyLimits): number {
  const most = EXTRAPOLATED * Math.max(1, Math.ceil(server.load.seen));
  const full = findFirst([0, most + 1], (underWay) => !hasCache(server, underWay));
  let from = 0;
  while (from < full) {
    const to = Math.min(full, Math.floor(server.tpot.near(from).end) + 1);
    const broken = findFirst([from, to], (underWay) => !keepsTpot(server, underWay, limits));
    if (broken < to) return broken;
    from = to;
  }
  return full;
}

/**
 * Finds the first number from `from` on and before `to` for which `holds` returns true, else `to`. It bisects, so
 * `holds` must stay true above the first one: a caller may report loads of billions, which cannot be tried one by one.
 */
function findFirst([from, to]: readonly [from: number, to: number], holds: (value: number) => boolean): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

interface At {
  readonly server: LoadedServer;
  readonly underWay: number;
}

/** Returns false if the KV cache would be full, in proportion to the load: then requests wait for others to end. */
function hasCache({ load }: LoadedServer, underWay: number): boolean {
  return load.at(underWay).kvCacheUsage <= 1;
}

function keepsTpot({ tpot }: LoadedServer, underWay: number, { tpotMs, quantile }: LatencyLimits): boolean {
  const { promptTokensPerMs, factors } = tpot.near(underWay);
  return tpotMs === undefined || quantileOf(factors, quantile) * tpot.at(underWay, promptTokensPerMs) <= tpotMs;
}

/** A quantile keeps a limit if the share of requests within it, averaged over prompts, is at least the quantile level. */
function keepsTtft(model: ServiceModel, { server, underWay }: At, { ttftMs, quantile }: LatencyLimits): boolean {
  if (ttftMs === undefined) return true;
  const load = server.load.at(underWay);
  const prompts = pickPrompts(server.requests);
  let within = 0;
  for (const prompt of prompts)
    within += model.shareWithin(server.name, model.predictTtft(server.name, { ...prompt, ...load }), ttftMs);
  return within >= quantile * prompts.length;
}

function pickPrompts<Prompt>(all: readonly Prompt[]): Prompt[] {
  const count = Math.min(PROMPTS, all.length);
  return Array.from({ length: count }, (_, i) => all[Math.floor((i * all.length) / count)]!);
}
