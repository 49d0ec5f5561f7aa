/** One process at a time removes what has expired and keeps the signing keys young. */
import { acquireLease, releaseLease } from '../database/leases.ts';
import type { Worker } from '../workers/worker.ts';
import type { ProtocolParts } from './parts.ts';
import { sweepExpired } from './sweep-store.ts';

const ROUND_EVERY_MS = 60_000;
const LEASE_MS = 120_000;
/** Between two batches others get their turn at the writer. */
const PAUSE_MS = 20;
const MAX_BATCHES = 1000;

export function createSweeper(parts: ProtocolParts): Worker {
  const owner = parts.world.uuid();
  const stopping = new AbortController();
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sweepRound(parts, owner, stopping.signal).catch((err: unknown) => {
        if (!stopping.signal.aborted) parts.log.error({ err }, 'A round of the sweeper failed');
      });
      await parts.world.sleep(ROUND_EVERY_MS, stopping.signal).catch(() => {});
    }
  }

  return {
    name: 'authorization sweeper',
    start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** Exported for its test. */
export async function sweepRound(parts: ProtocolParts, owner: string, signal: AbortSignal): Promise<void> {
  const { store, world } = parts;
  const nowMs = world.nowMs();
  const lease = await acquireLease(store, { name: 'authorization-sweeper', owner, nowMs, durationMs: LEASE_MS });
  if (lease === undefined) return;
  try {
    for (let batch = 0; batch < MAX_BATCHES && !signal.aborted && world.nowMs() < lease.expiresAtMs; batch++) {
      if (!(await sweepExpired(store, world.nowMs()))) break;
      await world.sleep(PAUSE_MS, signal);
    }
    await parts.signingKeys.ensureFresh();
  } finally {
    await releaseLease(store, lease);
  }
}
