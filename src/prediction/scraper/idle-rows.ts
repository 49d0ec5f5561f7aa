/**
 * Decides which rows of zeros describe an idle server; in all others, the caller does not know the load.
 *
 * A question is a server and a request: `server_ip`, `pod_type`, `input_token_length` and `prefix_cache_score`. A row of zeros
 * describes an idle server if it comes after a row of the same question that has a load, or in the second half of a call of a
 * router (docs/how-to/route.md). All other rows of zeros lack the load, also those of a candidate that is listed twice.
 */
import type { PredictColumns } from '../schema/columns.ts';

/**
 * Returns how many rows come before those that describe idle servers. In a call of a router these are half of its rows: they
 * repeat the questions of the first half in the same order, with zeros. If all rows name one server, they are duplicates:
 * there is nothing to choose for a router.
 */
export function countLoadedRows(columns: PredictColumns, servers: Int32Array): number {
  const half = columns.count / 2;
  const first = servers.subarray(0, half);
  if (!Number.isInteger(half) || first.every((server) => server === first[0])) return columns.count;
  const isRepeated = (_: number, row: number): boolean =>
    isWithoutLoad(columns, row + half) && isSameQuestion(columns, servers, [row, row + half]);
  return first.every(isRepeated) ? half : columns.count;
}

/** Returns a function to be called for each row in order: true if the first row of the same question has a load. */
export function createLoadedQuestions(columns: PredictColumns, servers: Int32Array): (row: number) => boolean {
  const { podType, inputTokenLength, prefixCacheScore } = columns;
  const loaded = new Map<string, boolean>();
  return (row) => {
    const question = `${servers[row]} ${podType[row]} ${inputTokenLength[row]} ${prefixCacheScore[row]}`;
    const known = loaded.get(question) ?? !isWithoutLoad(columns, row);
    loaded.set(question, known);
    return known;
  };
}

export function isWithoutLoad(columns: PredictColumns, row: number): boolean {
  return (
    columns.numRequestWaiting[row] === 0 &&
    columns.numRequestRunning[row] === 0 &&
    columns.kvCacheUsage[row] === 0 &&
    columns.inflightTokens[row] === 0
  );
}

function isSameQuestion(
  { podType, inputTokenLength, prefixCacheScore }: PredictColumns,
  servers: Int32Array,
  [one, other]: readonly [one: number, other: number],
): boolean {
  return [servers, podType, inputTokenLength, prefixCacheScore].every((column) => column[one] === column[other]);
}
