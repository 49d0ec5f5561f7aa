/** One process at a time removes what has expired and keeps the signing keys young. */
import { runUnderLease } from '../../database/leases.ts';
import type { IsClockTrusted } from '../../steady-clock.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { sweepExpired } from './sweep-store.ts';

const LEASE = { name: 'authorization-sweeper', durationMs: 60_000 };
/** Between two batches others get their turn at the writer. */
const PAUSE_MS = 20;

interface TokenSweeperDependencies extends ProtocolDependencies {
  readonly isClockTrusted: IsClockTrusted;
}

export function createSweeper(dependencies: TokenSweeperDependencies): Worker {
  const { world, log } = dependencies;
  const round = (stopping: AbortSignal) =>
    runUnderLease(dependencies, LEASE, (lost) => sweepAll(dependencies, AbortSignal.any([stopping, lost])));
  return createRoundWorker({ name: 'authorization-sweeper', restMs: 60_000, world, log, round });
}

async function sweepAll(dependencies: TokenSweeperDependencies, signal: AbortSignal): Promise<void> {
  const { store, world, signingKeys, isClockTrusted } = dependencies;
  while (!signal.aborted && isClockTrusted() && (await sweepExpired(store, world.nowMs())))
    await world.sleep(PAUSE_MS, signal);
  await signingKeys.ensureFresh();
}
