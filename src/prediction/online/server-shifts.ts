/**
 * Lists the servers that have lately been slower or faster than the served version expects. Predictions include the mean residual
 * of each server already, so the errors of predictions do not show such a change; the mean residual does.
 */
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import { readSlowResidual } from './residual-tracker.ts';
import type { SavedServer } from './saved-live-model.ts';

const MIN_WEIGHT = 10;
/** The least shift as a logarithm: 25 % slower, or 20 % faster. */
const LEAST_SHIFT = Math.log(1.25);
/** Further servers are left out, because a page must not delay calls. */
const MAX_SERVERS = 2000;

export interface ServerShift {
  readonly server: string;
  readonly target: PredictionTarget;
  /** 1.3 is 30 % slower than expected. */
  readonly factor: number;
}

/** The largest shifts first. */
export function listServerShifts(servers: Iterable<Pick<SavedServer, 'address' | 'means'>>): ServerShift[] {
  const shifts: ServerShift[] = [];
  let looked = 0;
  for (const { address, means } of servers) {
    for (const target of PREDICTION_TARGETS) {
      const { mean, weight } = readSlowResidual(means, target);
      const shift = weight < MIN_WEIGHT ? 0 : mean;
      if (Math.abs(shift) >= LEAST_SHIFT) shifts.push({ server: address, target, factor: Math.exp(shift) });
    }
    looked += 1;
    if (looked === MAX_SERVERS) break;
  }
  return shifts.sort((one, other) => Math.abs(Math.log(other.factor)) - Math.abs(Math.log(one.factor)));
}
