/** Keeps the metrics and counts of each server, and forgets servers that were not used for an hour. */
import { toInt32 } from './int32.ts';
import type { Input } from './messages.ts';

/** A server without requests under way that was not used for this long is forgotten. */
const FORGET_AFTER_MS = 3_600_000;

export interface Metrics {
  /** Length of the queue. */
  readonly waiting: number;
  /** Share of the KV cache in use, 0 to 1. */
  readonly kvCacheUsage: number;
}

/** Returns false for impossible metrics, such as NaN from a division by 0. */
export function canBeTrue({ waiting, kvCacheUsage }: Metrics): boolean {
  return [waiting, kvCacheUsage].every((value) => Number.isFinite(value) && value >= 0);
}

export interface Server {
  metrics: Metrics | undefined;
  /** When the metrics were read. */
  readMs: number;
  /** When the server was last a candidate, or got metrics. */
  usedMs: number;
  sentSinceMetrics: number;
  underWay: number;
  tokens: number;
  lastSent: number;
}

export interface Servers {
  readonly count: number;
  /** Returns the server of this address. A new one counts as if the last request of all had gone to it. */
  of(address: string, sent: number): Server;
  /** Returns undefined if the metrics are too old. */
  findMetrics(server: Server): Metrics | undefined;
  /** Returns true if the metrics are too old, false without metrics. */
  hasOldMetrics(server: Server): boolean;
  /** Returns the requests waiting by its metrics plus those under way. */
  countRequests(server: Server): number;
  /** Returns the load of a server: fresh counts of what was sent, and older metrics. */
  describe(server: Server): Partial<Input>;
  forgetUnused(): void;
}

export interface ServersOptions {
  /** Metrics older than this do not count. */
  readonly maxMetricsAgeMs: number;
  /** A clock that never goes back. */
  readonly monotonicMs: () => number;
}

export function createServers({ maxMetricsAgeMs, monotonicMs }: ServersOptions): Servers {
  const servers = new Map<string, Server>();
  let sweptMs = monotonicMs();

  function findMetrics({ metrics, readMs }: Server): Metrics | undefined {
    return monotonicMs() - readMs > maxMetricsAgeMs ? undefined : metrics;
  }

  return {
    get count() {
      return servers.size;
    },
    findMetrics,
    hasOldMetrics: (server) => server.metrics !== undefined && findMetrics(server) === undefined,
    countRequests: (server) => (findMetrics(server)?.waiting ?? 0) + server.underWay,
    of(address, sent) {
      const usedMs = monotonicMs();
      const known = servers.get(address);
      if (known !== undefined) return Object.assign(known, { usedMs });
      const load = { sentSinceMetrics: 0, underWay: 0, tokens: 0, lastSent: sent };
      const server = { metrics: undefined, readMs: usedMs, usedMs, ...load };
      servers.set(address, server);
      return server;
    },
    describe(server) {
      const { sentSinceMetrics, underWay, tokens } = server;
      const metrics = findMetrics(server);
      const load = { numRequestRunning: underWay, inflightTokens: toInt32(tokens) };
      if (metrics === undefined) return load;
      const numRequestWaiting = toInt32(metrics.waiting + Math.min(sentSinceMetrics, underWay));
      return { ...load, numRequestWaiting, kvCacheUsage: metrics.kvCacheUsage };
    },
    forgetUnused() {
      const nowMs = monotonicMs();
      if (nowMs - sweptMs < FORGET_AFTER_MS) return;
      sweptMs = nowMs;
      for (const [address, { underWay, usedMs }] of servers)
        if (underWay === 0 && nowMs - usedMs >= FORGET_AFTER_MS) servers.delete(address);
    },
  };
}
