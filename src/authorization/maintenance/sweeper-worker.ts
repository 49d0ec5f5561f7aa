/** One process at a time removes what has expired and renews the signing keys. */
import type { IsClockTrusted } from '../../steady-clock.ts';
import { createLeasedWorker } from '../../workers/leased-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { sweepEnded } from './retention-store.ts';

const REST_MS = 60_000;
/** Between two batches others get their turn at the writer. */
const PAUSE_MS = 20;

interface SweeperDependencies extends ProtocolDependencies {
  readonly isClockTrusted: IsClockTrusted;
}

export function createSweeper(dependencies: SweeperDependencies): Worker {
  const { store, world, log, lifetimes, signingKeys, isClockTrusted } = dependencies;
  const round = async (signal: AbortSignal): Promise<void> => {
    const sweep = { nowMs: world.nowMs(), auditDays: lifetimes.auditDays, pause: () => world.sleep(PAUSE_MS, signal) };
    if (isClockTrusted()) await sweepEnded(store, sweep);
    await signingKeys.ensureFresh();
  };
  return createLeasedWorker({ name: 'authorization-sweeper', restMs: REST_MS, store, world, log, round });
}
