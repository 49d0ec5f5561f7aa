/** Divides inputs into classes of similar load, so that thinning keeps samples of each. */
import type { ObservedInput } from '../schema/observation-event.ts';

const WAITING = [1, 8, 64];
const KV_CACHE = [0.25, 0.6, 0.85];
const PREFIX = [0.05, 0.6];
const LENGTH = [256, 2048, 8192];

/**
 * Returns the load class of an input: queue length × KV cache use × prefix hit share × prompt length. Each of the four is divided
 * into ranges, and the number packs the four ranges, with the prompt length in the lowest place (`splitLoadClass` unpacks it).
 * Samples of rare classes are kept when those of frequent ones are thinned.
 */
export function loadClassOf(input: ObservedInput): number {
  const waiting = countReached(WAITING, input.numRequestWaiting);
  const kvCache = countReached(KV_CACHE, input.kvCacheUsage);
  const prefix = countReached(PREFIX, input.prefixCacheScore);
  const length = countReached(LENGTH, input.inputTokenLength);
  return ((waiting * (KV_CACHE.length + 1) + kvCache) * (PREFIX.length + 1) + prefix) * (LENGTH.length + 1) + length;
}

/** The four metrics of a load class, from the highest place of its number to the lowest, with the edges of their ranges. */
export const LOADS = [
  { field: 'num_request_waiting', edges: WAITING },
  { field: 'kv_cache_usage', edges: KV_CACHE },
  { field: 'prefix_cache_score', edges: PREFIX },
  { field: 'input_token_length', edges: LENGTH },
] as const;

/** Unpacks a load class: how many edges were reached in each of `LOADS`. */
export function splitLoadClass(loadClass: number): number[] {
  const parts: number[] = [];
  let rest = loadClass;
  for (const { edges } of LOADS.toReversed()) {
    parts.unshift(rest % (edges.length + 1));
    rest = Math.floor(rest / (edges.length + 1));
  }
  return parts;
}

function countReached(edges: readonly number[], value: number): number {
  return edges.filter((edge) => value >= edge).length;
}

/** Describes a load class by the range of each metric, such as "1-8" or "64+". */
export function describeLoadClass(loadClass: number) {
  const [waiting, kvCache, prefix, length] = splitLoadClass(loadClass).map((reached, position) =>
    describeRange(LOADS[position]!.edges, reached),
  );
  return { waiting: waiting!, kv_cache: kvCache!, prefix: prefix!, length: length! };
}

function describeRange(edges: readonly number[], reached: number): string {
  const [from, to] = [edges[reached - 1] ?? 0, edges[reached]];
  return to === undefined ? `${from}+` : `${from}-${to}`;
}
