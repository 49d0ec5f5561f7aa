/** Declares the rows of a call that one slot answers. */
import { EXPERT_COUNT } from './experts.ts';
import { createStalledQueueBounds, type StalledQueueBounds } from './stalled-queue/stalled-queue-bounds.ts';

/** The rows of a call that one slot answers. Arrays are in the order of the batch; their first `count` entries are valid. */
export interface Batch {
  count: number;
  /** Positions among all rows of the call. */
  rows: Int32Array;
  /** The number of each row's server, -1 for an unknown server. */
  servers: Int32Array;
  /** Bounds from stalled queues, for all rows of the call: indexed by `rows`, not in the order of the batch. */
  queueBounds: StalledQueueBounds;
  /** The number of their pod type: a slot answers one pod type, or all those that share the number 0. */
  podType: number;
}

export function createBatch(capacity: number): Batch {
  return {
    count: 0,
    rows: new Int32Array(capacity),
    servers: new Int32Array(capacity),
    queueBounds: createStalledQueueBounds(capacity),
    podType: 0,
  };
}

/** The joint prediction of all experts for a batch, in its order. The arrays are reused from batch to batch. */
export interface Mixture {
  /** The logarithm of the factor by which each expert multiplies physics: row after row, one entry for each expert. */
  readonly expertLogFactors: Float64Array;
  /** The weighted mean of these logarithms, for each row. */
  readonly logFactors: Float64Array;
  readonly timesMs: Float64Array;
}

export function createMixture(capacity: number): Mixture {
  return {
    expertLogFactors: new Float64Array(capacity * EXPERT_COUNT),
    logFactors: new Float64Array(capacity),
    timesMs: new Float64Array(capacity),
  };
}
