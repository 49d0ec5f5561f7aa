/** The rows of a call that one slot answers: what its two targets must know of them beside what the model says. */
import type { Statistic } from '../model/calibration.ts';
import { EXPERT_COUNT } from './experts.ts';

/** Arrays are in the order of `rows`; their first `count` entries are valid. Reused from call to call. */
export interface AskedRows {
  count: number;
  /** Positions among all rows of the call. */
  rows: Int32Array;
  /** The number of each row's server, -1 when nothing is known of it. */
  servers: Int32Array;
  /** The number of their pod type: a slot answers one, or those that have none. */
  podType: number;
  statistic: Statistic;
  /** False while nothing was observed: the model then answers alone. */
  isLive: boolean;
  /** For a target at work: what each expert multiplies physics with, as a logarithm, row after row. */
  expertLogs: Float64Array;
  /** The same of what is answered. */
  logs: Float64Array;
}

export function createAskedRows(capacity: number): AskedRows {
  return {
    count: 0,
    rows: new Int32Array(capacity),
    servers: new Int32Array(capacity),
    podType: 0,
    statistic: 'p50',
    isLive: true,
    expertLogs: new Float64Array(capacity * EXPERT_COUNT),
    logs: new Float64Array(capacity),
  };
}
