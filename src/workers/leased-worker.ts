/** Runs a repeated task in one process at a time, by a lease. After a lost lease two rounds may overlap: they must be idempotent. */
import { runUnderLease } from '../database/leases.ts';
import type { Store } from '../database/store.ts';
import { createRoundWorker, type RoundWork } from './round-worker.ts';
import type { Worker } from './worker.ts';

const LEASE_MS = 60_000;

export interface LeasedWork extends RoundWork {
  readonly store: Store;
}

/** The signal of a round also aborts when the lease is lost. */
export function createLeasedWorker({ store, round, ...work }: LeasedWork): Worker {
  const lease = { name: work.name, durationMs: LEASE_MS };
  return createRoundWorker({
    ...work,
    round: (stopping) =>
      runUnderLease({ store, world: work.world }, lease, async (lost) => {
        await round(AbortSignal.any([stopping, lost]));
      }),
  });
}
