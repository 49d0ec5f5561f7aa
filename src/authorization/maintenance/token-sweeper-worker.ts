/** One process at a time removes what has expired and keeps the signing keys young. */
import { runUnderLease } from '../../database/leases.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import type { ProtocolParts } from '../tokens/parts.ts';
import { sweepExpired } from './sweep-store.ts';

const LEASE = { name: 'authorization-sweeper', durationMs: 60_000 };
/** Between two batches others get their turn at the writer. */
const PAUSE_MS = 20;

export function createSweeper(parts: ProtocolParts): Worker {
  const { world, log } = parts;
  const round = (stopping: AbortSignal) =>
    runUnderLease(parts, LEASE, (lost) => sweepAll(parts, AbortSignal.any([stopping, lost])));
  return createRoundWorker({ name: 'authorization-sweeper', restMs: 60_000, world, log, round });
}

async function sweepAll({ store, world, signingKeys }: ProtocolParts, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && (await sweepExpired(store, world.nowMs()))) await world.sleep(PAUSE_MS, signal);
  await signingKeys.ensureFresh();
}
