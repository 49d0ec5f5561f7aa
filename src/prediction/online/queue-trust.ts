/**
 * Whether what seems to wait does wait: a request whose first token is reported to another process, or never, looks as if
 * it waited. Waits of queues are believed as long as the times that they were above the prediction for prove them right.
 */

import type { Target } from '../schema/observation-table.ts';
import { type QueueWaits, raiseTimes } from './queue-waits.ts';

/** How much the last request counts in the share of requests that took as long as the queue said. */
const WEIGHT = 0.05;
const LEAST_SHARE = 0.5;

/** What was said of a request. */
export interface QueueClaim {
  readonly leastMs: number;
  /** What is predicted without it. */
  readonly predictedMs: number;
}

/** The rows of a call that one slot answers. */
interface WaitingRows {
  readonly count: number;
  readonly rows: Int32Array;
  readonly waits: QueueWaits;
}

export interface QueueTrust {
  /** Raises each time to the least of its row, as far as that is believed. */
  raise(timesMs: Float64Array, batch: WaitingRows): void;
  /** The least of each row for quantiles above the median, if that is believed. */
  leastQuantiles(waits: QueueWaits): Float64Array | undefined;
  observe(claim: QueueClaim, observedMs: number): void;
}

export function createQueueTrust(target: Target): QueueTrust {
  let share = 1;
  // What waits now says little of later tokens.
  const isBelieved = () => target === 'ttft' && share > LEAST_SHARE;
  return {
    raise(timesMs, batch) {
      if (isBelieved()) raiseTimes(timesMs, batch.waits.leastMs, batch);
    },
    leastQuantiles: ({ leastQuantileMs }) => (isBelieved() ? leastQuantileMs : undefined),
    observe({ leastMs, predictedMs }, observedMs) {
      if (leastMs > predictedMs) share += WEIGHT * (Number(observedMs >= leastMs) - share);
    },
  };
}
