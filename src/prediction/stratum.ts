import type { ObservedInput } from './observation-event.ts';

const WAITING = [1, 8, 64];
const KV_CACHE = [0.25, 0.6, 0.85];
const PREFIX = [0.05, 0.6];
const LENGTH = [256, 2048, 8192];

/** Which kind of load this was: queue × memory × reuse × length. Rare kinds are kept when frequent ones are thinned. */
export function stratumOf(input: ObservedInput): number {
  const waiting = countReached(WAITING, input.numRequestWaiting);
  const kvCache = countReached(KV_CACHE, input.kvCacheUsage);
  const prefix = countReached(PREFIX, input.prefixCacheScore);
  const length = countReached(LENGTH, input.inputTokenLength);
  return ((waiting * (KV_CACHE.length + 1) + kvCache) * (PREFIX.length + 1) + prefix) * (LENGTH.length + 1) + length;
}

function countReached(edges: readonly number[], value: number): number {
  return edges.filter((edge) => value >= edge).length;
}
