/**
 * Decides whether the bounds of stalled queues are used: only while they prove right. A request whose first token is reported to
 * another process, or never, seems to wait, and makes a queue look stalled. So of the requests whose forecast a bound raised,
 * most (`MIN_SHARE`) must have taken at least as long as the bound.
 */

import type { PredictionTarget } from '../../schema/observation-table.ts';
import { raiseToBounds, type StalledQueueBounds } from './stalled-queue-bounds.ts';

/** Weight of the newest request in the moving share of bounds that proved right. */
const WEIGHT = 0.05;
const MIN_SHARE = 0.5;

/** The bound of a forecast, kept until the time is observed. */
export interface ForecastBound {
  readonly leastMs: number;
  /** The prediction without the bound. */
  readonly predictedMs: number;
}

/** The rows of a call that one slot answers. */
interface BoundedRows {
  readonly count: number;
  readonly rows: Int32Array;
  readonly queueBounds: StalledQueueBounds;
}

export interface StalledQueueCheck {
  /** Raises each time to the bound of its row, while bounds are used. */
  raise(timesMs: Float64Array, batch: BoundedRows): void;
  /** The bounds of quantiles above the median, while bounds are used. */
  quantileBounds(queueBounds: StalledQueueBounds): Float64Array | undefined;
  observe(bound: ForecastBound, observedMs: number): void;
}

export function createStalledQueueCheck(target: PredictionTarget): StalledQueueCheck {
  let shareRight = 1;
  // A queue delays the first token, and says little of the time per token after it.
  const areUsed = () => target === 'ttft' && shareRight > MIN_SHARE;
  return {
    raise(timesMs, batch) {
      if (areUsed()) raiseToBounds(timesMs, batch.queueBounds.leastMs, batch);
    },
    quantileBounds: ({ leastQuantileMs }) => (areUsed() ? leastQuantileMs : undefined),
    observe({ leastMs, predictedMs }, observedMs) {
      if (leastMs > predictedMs) shareRight += WEIGHT * (Number(observedMs >= leastMs) - shareRight);
    },
  };
}
