/**
 * Computes lower bounds of TTFT from a stalled queue, whose requests have waited longer than predicted. A request that joins the
 * queue now hardly gets its first token sooner than the requests before it. Requests that have waited longer than predicted are
 * known misses (censored observations), so no prediction and no quantile may stay below these bounds. `stalled-queue-check.ts`
 * stops using them where they prove wrong.
 */
import type { MetricColumns } from '../../schema/observation-table.ts';

/** Shares of the time that the whole queue takes at the pace of the latest first tokens: for the prediction, and for quantiles. */
const LEAST_SHARE = 0.25;
const LEAST_QUANTILE_SHARE = 0.6;
/** A bound is not used when the newest report is older than this share of the wait: the server may have answered meanwhile. */
const MAX_REPORT_AGE = 0.5;

/** Milliseconds for each row of a call; 0 is no bound. */
export interface StalledQueueBounds {
  /** Bound of the prediction. */
  readonly leastMs: Float64Array;
  /** Bound of the quantiles above the median. */
  readonly leastQuantileMs: Float64Array;
}

export function createStalledQueueBounds(capacity: number): StalledQueueBounds {
  return { leastMs: new Float64Array(capacity), leastQuantileMs: new Float64Array(capacity) };
}

type Histories = Pick<
  MetricColumns,
  'count' | 'sinceFirstTokenMs' | 'sinceDispatchMs' | 'oldestWaitingMs' | 'firstTokenGapMs' | 'expectedWaitMs'
>;

/** Computes the bounds of each row from the reports about its server. */
export function fillStalledQueueBounds(columns: Histories, bounds: StalledQueueBounds): void {
  const { count, oldestWaitingMs } = columns;
  for (let row = 0; row < count; row++) {
    bounds.leastMs[row] = 0;
    bounds.leastQuantileMs[row] = 0;
    if (oldestWaitingMs[row]! > 0) fillRowBounds(columns, row, bounds);
  }
}

function fillRowBounds(columns: Histories, row: number, { leastMs, leastQuantileMs }: StalledQueueBounds): void {
  const queueMs = columns.expectedWaitMs[row]!;
  const waitedMs = columns.oldestWaitingMs[row]! - readReportAge(columns, row) / MAX_REPORT_AGE;
  if (!(queueMs > 0 && waitedMs > 0)) return;
  // A young queue usually clears at once. It counts as stalled (0 to 1) when its oldest request waits longer than the usual gap.
  const stalled = waitedMs ** 2 / (waitedMs ** 2 + columns.firstTokenGapMs[row]! ** 2);
  leastMs[row] = LEAST_SHARE * stalled * queueMs;
  leastQuantileMs[row] = Math.max(Math.min(queueMs, waitedMs), LEAST_QUANTILE_SHARE * stalled * queueMs);
}

/** Milliseconds since the newest report of the server. Reports may come late, or in batches. */
function readReportAge({ sinceFirstTokenMs, sinceDispatchMs }: Histories, row: number): number {
  const sinceDispatch = sinceDispatchMs[row]!;
  const sinceFirstToken = sinceFirstTokenMs[row]!;
  return sinceDispatch < sinceFirstToken ? sinceDispatch : sinceFirstToken;
}

/** Raises each time to the bound of its row. */
export function raiseToBounds(timesMs: Float64Array, leastMs: Float64Array, { count, rows }: RaisedRows): void {
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
