/** Saves the agreed state for a restart, and deletes the rows of the log that it replaces. */
import type { Store } from '../../database/store.ts';
import { MAX_SKEW_MS } from '../../steady-clock.ts';
import type { World } from '../../world.ts';
import { deleteUnreadStates, listSavedStates, saveLiveStates } from './live-state-store.ts';
import type { SharedLearning } from './shared-learning.ts';
import { deleteLogRows } from './shared-log-store.ts';

/** How often the state is saved. The log has what was learned after that. */
const SAVE_EVERY_MS = 10_000;
/** The most states in one transaction, since each may have megabytes. */
const STATES_AT_ONCE = 16;
/** Rows are kept for this long. A process that was cut off for longer restores the saved state. */
const KEPT_MS = 120_000;

export interface StateSaver {
  /** These models have changed since they were saved. */
  markChanged(names: readonly string[]): void;
  saveDue(): Promise<void>;
  /** Saves the models that changed, except those that another process has saved within `youngerMs`. */
  save(youngerMs: number): Promise<void>;
}

interface StateSaverDependencies {
  readonly store: Store;
  readonly world: World;
}

export function createStateSaver(
  { store, world }: StateSaverDependencies,
  learning: Pick<SharedLearning, 'save' | 'sequence'>,
): StateSaver {
  const changed = new Set<string>();
  let savedMs = world.monotonicMs();

  async function save(youngerMs: number): Promise<void> {
    const nowMs = world.nowMs();
    savedMs = world.monotonicMs();
    const saved = await listSavedStates(store);
    const isLate = (savedAtMs: number): boolean =>
      // A time in the future means that the clock was wrong when the state was saved.
      savedAtMs <= nowMs - youngerMs || savedAtMs > nowMs + MAX_SKEW_MS;
    const late = [...changed].filter((name) => isLate(saved.get(name)?.savedAtMs ?? 0));
    for (let start = 0; start < late.length; start += STATES_AT_ONCE) {
      const names = late.slice(start, start + STATES_AT_ONCE);
      await saveLiveStates(store, learning.save(names), nowMs);
      for (const name of names) changed.delete(name);
    }
    await deleteUnreadStates(store, saved);
    const savedTo = Array.from(changed, (name) => saved.get(name)?.sequence ?? 0);
    await deleteLogRows(store, Math.min(learning.sequence, ...savedTo), nowMs - KEPT_MS);
  }

  return {
    save,
    markChanged(names: readonly string[]): void {
      for (const name of names) changed.add(name);
    },
    async saveDue(): Promise<void> {
      if (world.monotonicMs() - savedMs >= SAVE_EVERY_MS) await save(SAVE_EVERY_MS / 2);
    },
  };
}
