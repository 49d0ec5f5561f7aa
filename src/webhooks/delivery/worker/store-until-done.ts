/** Stores something that must not be lost: tries again until the database stores it or the process has to stop. */
import type { Store } from '../../../database/store.ts';
import { describeError } from '../../../errors.ts';
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
}

/** Returns the answer of the store; undefined if `abandoned` was aborted first. */
export async function storeUntilDone<Answer>(
  { store, world, log }: StoreDependencies,
  write: (store: Store) => Promise<Answer>,
  { what, abandoned }: StoreOptions,
): Promise<Answer | undefined> {
  let hasFailed = false;
  for (let waitMs = RETRY_MS; !abandoned.aborted; waitMs = Math.min(waitMs * 2, MAX_RETRY_MS)) {
    try {
      const answer = await write(store);
      if (hasFailed) log.warn({ what }, 'Outcomes of deliveries are stored again');
      return answer;
    } catch (error) {
      // Logged once, not at each retry of an outage.
      if (!hasFailed)
        log.warn({ what, reason: describeError(error) }, 'Cannot store outcomes of deliveries; trying again');
      hasFailed = true;
      await world.sleep(waitMs, abandoned).catch(() => {});
    }
  }
  return undefined;
}
