/**
 * Counts the attempts of this process, and adds the counts to the store every two seconds. A row for each attempt would double
 * the writes of a delivery. A process that is killed loses the counts of up to two seconds, but no delivery.
 */
import type { Store } from '../../../database/store.ts';
import { isFailure } from '../../../errors.ts';
import type { Log } from '../../../telemetry/log.ts';
import { createRoundWorker } from '../../../workers/round-worker.ts';
import type { Worker } from '../../../workers/worker.ts';
import type { World } from '../../../world.ts';
import type { SendReport } from '../send/send-report.ts';
import { addDeliveryMinutes, DURATION_EDGES_MS, minuteOf } from './delivery-minute-store.ts';

const WRITE_EVERY_MS = 2000;
/** Rows of one write, which is one statement: either all are stored or none. */
const MAX_ROWS = 64;
/** Limit of the counts, each of one hook and minute, that wait for the store; while it is away, further ones are lost. */
const MAX_WAITING = 20_000;

export interface DeliveryMinutes extends Worker {
  readonly count: (hookId: number, report: Pick<SendReport, 'outcome' | 'timingsMs'>) => void;
}

interface Count {
  readonly hookId: number;
  readonly minute: number;
  accepted: number;
  failed: number;
  readonly durations: number[];
}

export interface DeliveryMinutesDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
}

export function createDeliveryMinutes({ store, world, log }: DeliveryMinutesDependencies): DeliveryMinutes {
  let waiting = new Map<string, Count>();

  async function write(): Promise<void> {
    const counts = [...waiting.values()];
    waiting = new Map();
    for (let at = 0; at < counts.length; at += MAX_ROWS)
      await addDeliveryMinutes(store, counts.slice(at, at + MAX_ROWS)).catch((error: unknown) => {
        if (isPassing(error)) for (const count of counts.slice(at)) putBack(waiting, count);
        throw error;
      });
  }

  const worker = createRoundWorker({ name: 'delivery-minutes', restMs: WRITE_EVERY_MS, world, log, round: write });
  return {
    ...worker,
    count(hookId, { outcome, timingsMs }) {
      const count = findCount(waiting, { hookId, minute: minuteOf(world.nowMs()) });
      count[outcome.kind === 'accepted' ? 'accepted' : 'failed'] += 1;
      const edge = DURATION_EDGES_MS.findIndex((edgeMs) => timingsMs.total < edgeMs);
      count.durations[edge === -1 ? DURATION_EDGES_MS.length : edge]! += 1;
    },
    async stop() {
      await worker.stop();
      await write().catch((err: unknown) => log.error({ err }, 'Cannot store the counts of attempts'));
    },
  };
}

/** Finds or creates the counts of a hook in a minute; if too many wait, they are lost. */
function findCount(waiting: Map<string, Count>, { hookId, minute }: Pick<Count, 'hookId' | 'minute'>): Count {
  const key = `${minute} ${hookId}`;
  const count = waiting.get(key) ?? emptyCount(hookId, minute);
  if (waiting.size < MAX_WAITING) waiting.set(key, count);
  return count;
}

/** Merges counts that could not be stored with those that were counted since. */
function putBack(waiting: Map<string, Count>, left: Count): void {
  const count = findCount(waiting, left);
  count.accepted += left.accepted;
  count.failed += left.failed;
  for (const [index, more] of left.durations.entries()) count.durations[index]! += more;
}

/** Whether the database is away or too slow, so that the counts are stored again; they count twice if only its answer was lost. */
function isPassing(error: unknown): boolean {
  return isFailure(error) && (error.code === 'unavailable' || error.code === 'deadline');
}

function emptyCount(hookId: number, minute: number): Count {
  return { hookId, minute, accepted: 0, failed: 0, durations: [...DURATION_EDGES_MS, 0].map(() => 0) };
}
