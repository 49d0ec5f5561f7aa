/** Routes without a model: round robin, least requests, load and prefix. */
import type { Candidate, RoutingPolicy } from './simulate.ts';

export function createRoundRobin(): RoutingPolicy {
  let next = 0;
  return { name: 'round-robin', choose: (_request, candidates) => next++ % candidates.length };
}

/** Chooses the fewest requests waiting and running; on a tie, the fewest tokens in flight by the gateway's own count. */
export function createLeastRequests(): RoutingPolicy {
  return {
    name: 'least-requests',
    choose: (_request, candidates) =>
      indexOfLeast(
        candidates,
        ({ numRequestWaiting, numRequestRunning, inflightTokens }) =>
          numRequestWaiting + numRequestRunning + inflightTokens * 1e-9,
      ),
  };
}

const QUEUE_WEIGHT = 3;
const KV_WEIGHT = 2;
const PREFIX_WEIGHT = 2;

/** The tuned heuristic of gateways: queue (scaled between the shortest and the longest), KV cache use and prefix, 3 : 2 : 2. */
export function createLoadAndPrefix(): RoutingPolicy {
  return scoreLoadAndPrefix('load+prefix', (candidate) => candidate.numRequestWaiting);
}

/** The same with the gateway's count of requests under way in place of the scraped queue: never old, and rarely 0. */
export function createCountedLoadAndPrefix(): RoutingPolicy {
  return scoreLoadAndPrefix('load+prefix, own counts', (candidate) => candidate.underWay);
}

function scoreLoadAndPrefix(name: string, readQueue: (candidate: Candidate) => number): RoutingPolicy {
  return {
    name,
    choose(_request, candidates) {
      const queues = candidates.map(readQueue);
      const shortest = Math.min(...queues);
      const spread = Math.max(...queues) - shortest;
      return indexOfLeast(candidates, (candidate) => {
        const queueScore = spread === 0 ? 1 : 1 - (readQueue(candidate) - shortest) / spread;
        const score =
          QUEUE_WEIGHT * queueScore +
          KV_WEIGHT * (1 - candidate.kvCacheUsage) +
          PREFIX_WEIGHT * candidate.prefixCacheScore;
        return -score + candidate.inflightTokens * 1e-9;
      });
    },
  };
}

export function indexOfLeast(candidates: readonly Candidate[], cost: (candidate: Candidate) => number): number {
  let best = 0;
  let bestCost = Number.POSITIVE_INFINITY;
  for (const [index, candidate] of candidates.entries()) {
    const candidateCost = cost(candidate);
    if (candidateCost >= bestCost) continue;
    best = index;
    bestCost = candidateCost;
  }
  return best;
}
