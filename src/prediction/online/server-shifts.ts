/**
 * Servers that left their level: how much slower or faster than the served version expects each has been lately. It is
 * the correction that predictions carry already, so it shows a change that errors of predictions hide.
 */
import { TARGETS, type Target } from '../schema/observation-table.ts';
import type { SavedServer } from './saved-live-model.ts';

/** The slow mean (about 30 events) of what the trees were off by, among the means of a server. */
const POSITION: Readonly<Record<Target, number>> = { ttft: 3, tpot: 7 };
const MIN_WEIGHT = 10;
/** A fourth slower, or a fifth faster. */
const LEAST_SHIFT = Math.log(1.25);
/** More are not looked at: a page must not hold up calls. */
const MAX_SERVERS = 2000;

export interface ServerShift {
  readonly server: string;
  readonly target: Target;
  /** 1.3 is 30 % slower than expected. */
  readonly factor: number;
}

/** The largest shifts first. */
export function listServerShifts(servers: Iterable<Pick<SavedServer, 'address' | 'means'>>): ServerShift[] {
  const shifts: ServerShift[] = [];
  let looked = 0;
  for (const { address, means } of servers) {
    for (const target of TARGETS) {
      const weight = means.weights[POSITION[target]] ?? 0;
      const shift = weight < MIN_WEIGHT ? 0 : (means.sums[POSITION[target]] ?? 0) / weight;
      if (Math.abs(shift) >= LEAST_SHIFT) shifts.push({ server: address, target, factor: Math.exp(shift) });
    }
    looked += 1;
    if (looked === MAX_SERVERS) break;
  }
  return shifts.sort((one, other) => Math.abs(Math.log(other.factor)) - Math.abs(Math.log(one.factor)));
}
