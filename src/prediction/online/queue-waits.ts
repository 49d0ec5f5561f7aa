/**
 * What a queue that does not move says of TTFT before any of its requests is answered: a request that begins to wait now
 * hardly gets its first token sooner than those before it. Neither the prediction nor a quantile above it is below that,
 * whatever was learned of the load: requests that have waited longer than predicted are known misses (censored observations).
 */
import type { MetricColumns } from '../schema/observation-table.ts';

/** Shares of the time that the whole queue should take, at the pace of its last first tokens. */
const LEAST_SHARE = 0.25;
const LEAST_QUANTILE_SHARE = 0.6;
/** Reports that are as old as this share of a wait say nothing of it. */
const MAX_REPORT_AGE = 0.5;

/** In milliseconds, by the positions of the rows in a call; 0 where nothing is known. */
export interface QueueWaits {
  /** No prediction is below this. */
  readonly leastMs: Float64Array;
  /** No quantile above the median is below this. */
  readonly leastQuantileMs: Float64Array;
}

export function createQueueWaits(capacity: number): QueueWaits {
  return { leastMs: new Float64Array(capacity), leastQuantileMs: new Float64Array(capacity) };
}

type Histories = Pick<
  MetricColumns,
  'count' | 'sinceFirstTokenMs' | 'sinceDispatchMs' | 'oldestWaitingMs' | 'firstTokenGapMs' | 'expectedWaitMs'
>;

/** By what was reported of the server of each row. */
export function fillQueueWaits(columns: Histories, waits: QueueWaits): void {
  const { count, oldestWaitingMs } = columns;
  for (let row = 0; row < count; row++) {
    waits.leastMs[row] = 0;
    waits.leastQuantileMs[row] = 0;
    if (oldestWaitingMs[row]! > 0) fillQueueWait(columns, row, waits);
  }
}

function fillQueueWait(columns: Histories, row: number, { leastMs, leastQuantileMs }: QueueWaits): void {
  const queueMs = columns.expectedWaitMs[row]!;
  const waitedMs = columns.oldestWaitingMs[row]! - readReportAge(columns, row) / MAX_REPORT_AGE;
  if (!(queueMs > 0 && waitedMs > 0)) return;
  // A queue that has just begun is most often gone at once. It stands when its oldest request outlasts the usual gap.
  const standing = waitedMs ** 2 / (waitedMs ** 2 + columns.firstTokenGapMs[row]! ** 2);
  leastMs[row] = LEAST_SHARE * standing * queueMs;
  leastQuantileMs[row] = Math.max(Math.min(queueMs, waitedMs), LEAST_QUANTILE_SHARE * standing * queueMs);
}

/** How old the newest report of the server is: reports may come late, or together. */
function readReportAge({ sinceFirstTokenMs, sinceDispatchMs }: Histories, row: number): number {
  const sinceDispatch = sinceDispatchMs[row]!;
  const sinceFirstToken = sinceFirstTokenMs[row]!;
  return sinceDispatch < sinceFirstToken ? sinceDispatch : sinceFirstToken;
}

/** Raises each time to what is the least for its row. */
export function raiseTimes(timesMs: Float64Array, leastMs: Float64Array, { count, rows }: RaisedRows): void {
  for (let n = 0; n < count; n++) {
    const least = leastMs[rows[n]!]!;
    if (least > timesMs[n]!) timesMs[n] = least;
  }
}

interface RaisedRows {
  readonly count: number;
  /** Positions among all rows of the call. */
  readonly rows: Int32Array;
}
