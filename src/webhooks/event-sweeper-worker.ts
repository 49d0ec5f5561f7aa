/** Forgets, a few times an hour, events and keys that nobody will ask for again. */
import { acquireLease, releaseLease } from '../database/leases.ts';
import type { Store } from '../database/store.ts';
import type { Log } from '../telemetry/log.ts';
import type { Worker } from '../workers/worker.ts';
import type { World } from '../world.ts';
import { createEventStore } from './event-store.ts';
import { createHookStore } from './hook-store.ts';

const ROUND_EVERY_MS = 10 * 60_000;
const LEASE_MS = 5 * 60_000;
const HOUR_MS = 3_600_000;
/** As long as deliveries are kept. */
const KEEP_EVENTS_MS = 30 * 24 * HOUR_MS;

interface SweeperParts {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
}

export function createEventSweeper(parts: SweeperParts): Worker {
  const owner = parts.world.uuid();
  const stopping = new AbortController();
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sweepEvents(parts, owner).catch((err: unknown) => parts.log.error({ err }, 'A sweep of events failed'));
      await parts.world.sleep(ROUND_EVERY_MS, stopping.signal).catch(() => {});
    }
  }

  return {
    name: 'event sweeper',
    start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** One round, by one process at a time. */
export async function sweepEvents({ store, world }: Omit<SweeperParts, 'log'>, owner: string): Promise<void> {
  const nowMs = world.nowMs();
  const lease = await acquireLease(store, { name: 'event-sweeper', owner, nowMs, durationMs: LEASE_MS });
  if (lease === undefined) return;
  try {
    await createEventStore(store).prune(nowMs, KEEP_EVENTS_MS);
    await createHookStore(store).forgetTestsBefore(Math.floor(nowMs / HOUR_MS));
  } finally {
    await releaseLease(store, lease);
  }
}
