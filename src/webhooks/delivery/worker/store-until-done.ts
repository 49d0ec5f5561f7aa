/** Stores changes of deliveries, and tries again while the database is away, until the process has to stop. */
import type { Store } from '../../../database/store.ts';
import { describeError, isFailure } from '../../../errors.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { World } from '../../../world.ts';

const RETRY_MS = 100;
const MAX_RETRY_MS = 2000;

export interface StoreDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
}

export interface StoreOptions {
  /** What is stored, as the log names it. */
  readonly what: string;
  readonly abandoned: AbortSignal;
  /** Which errors are followed by another try. Results of attempts must not be lost, so any error is. */
  readonly retryAfter: 'any error' | 'an outage';
}

/** Returns the answer of the store; undefined if `abandoned` was aborted first, or after an error that is not retried. */
export async function storeUntilDone<Answer>(
  { store, world, log }: StoreDependencies,
  write: (store: Store) => Promise<Answer>,
  { what, abandoned, retryAfter }: StoreOptions,
): Promise<Answer | undefined> {
  let hasFailed = false;
  for (let waitMs = RETRY_MS; !abandoned.aborted; waitMs = Math.min(waitMs * 2, MAX_RETRY_MS)) {
    try {
      const answer = await write(store);
      if (hasFailed) log.warn({ what }, 'Outcomes of deliveries are stored again');
      return answer;
    } catch (error) {
      if (retryAfter === 'an outage' && !isOutage(error)) {
        log.error({ what, err: error }, 'Cannot store outcomes of deliveries');
        return undefined;
      }
      // Logged once, not at each retry of an outage.
      if (!hasFailed)
        log.warn({ what, reason: describeError(error) }, 'Cannot store outcomes of deliveries; trying again');
      hasFailed = true;
      await world.sleep(waitMs, abandoned).catch(() => {});
    }
  }
  return undefined;
}

/** The database is away, is too slow, or does not tell whether it has stored a write. Another error comes again at each try. */
function isOutage(error: unknown): boolean {
  return isFailure(error) && (error.code === 'unavailable' || error.code === 'deadline');
}
