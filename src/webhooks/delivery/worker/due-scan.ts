/**
 * Reads which hook queues are due, a page at a time, so that all have their turn. After a full page the next scan continues with the
 * next page. A scan comes a few times a second however busy the worker is, since only a scan finds retries that became due and
 * deliveries that other processes enqueued. While it finds such rows and there are other workers, scans are more frequent.
 */
import type { Store } from '../../../database/store.ts';
import type { World } from '../../../world.ts';
import { type DueHookQueue, readDueHookQueues } from '../queue/delivery-queue-store.ts';
import type { ShardLeases } from './shard-leases.ts';
import type { WakeSignal } from './wake-signal.ts';

const PAGE = 2000;
const START = { afterMs: -1, afterHookId: -1 };
const SCAN_EVERY_MS = 200;
/** The interval while other processes enqueue for this worker, which only a scan finds. */
const SCAN_AGAIN_MS = 10;
/** The short interval applies until scans have found nothing new for this long. */
const AGAIN_FOR_MS = 1000;
/** The shortest wait after a scan, as a multiple of its duration, so that scans take at most a quarter of the time. */
const REST_SHARE = 3;
/** The limit of that wait: after a scan that waited for an unavailable database it would be far too long. */
const MAX_REST_MS = 1000;

export interface DueScan {
  /** Requests a scan, since something may have become due, and wakes the dispatch loop. */
  request(): void;
  /** Milliseconds until the next scan is due. */
  waitMs(): number;
  /** Reads a page of due hook queues of this worker's shards. */
  read(): Promise<DueHookQueue[]>;
  /** Must be called once the rows of the scan are in the table. `hasNews`: a row was new, or had changed since the last scan. */
  end(hasNews: boolean): void;
}

export interface DueScanDependencies {
  readonly store: Store;
  readonly world: World;
  readonly leases: ShardLeases;
  readonly signal: WakeSignal;
}

export function createDueScan({ store, world, leases, signal }: DueScanDependencies): DueScan {
  let isRequested = true;
  let lastNewsMs = Number.NEGATIVE_INFINITY;
  let startMs = 0;
  let notBeforeMs = 0;
  let place = START;

  return {
    request: () => {
      isRequested = true;
      signal.wake();
    },
    waitMs: () => {
      const nowMs = world.monotonicMs();
      const everyMs = leases.hasPeers() && nowMs - lastNewsMs < AGAIN_FOR_MS ? SCAN_AGAIN_MS : SCAN_EVERY_MS;
      const dueMs = isRequested ? notBeforeMs : Math.max(notBeforeMs, startMs + everyMs);
      return Math.max(0, dueMs - nowMs);
    },
    read: async () => {
      isRequested = false;
      startMs = world.monotonicMs();
      const page = { workerId: leases.workerId, nowMs: world.nowMs(), ...place, limit: PAGE };
      const rows = await readDueHookQueues(store, page);
      const last = rows.length === PAGE ? rows.at(-1) : undefined;
      isRequested ||= last !== undefined || place !== START;
      place = last === undefined ? START : { afterMs: last.next_at_ms, afterHookId: last.hook_id };
      return rows.filter((row) => leases.epochOf(row.shard) !== undefined);
    },
    end: (hasNews) => {
      const endMs = world.monotonicMs();
      if (hasNews) lastNewsMs = endMs;
      notBeforeMs = endMs + Math.min(MAX_REST_MS, REST_SHARE * (endMs - startMs));
    },
  };
}
