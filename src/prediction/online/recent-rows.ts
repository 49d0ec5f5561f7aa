/** Keeps the last observed times with their metrics, for a replay. */
import type { PredictionTarget } from '../schema/observation-table.ts';
import type { ServerKey } from './residual-tracker.ts';

/** One observed time with the metrics of its server at the dispatch. */
export interface RecentRow {
  readonly key: ServerKey;
  readonly podType: string;
  /** Values in the order of MODEL_COLUMNS. */
  readonly metrics: readonly number[];
  readonly target: PredictionTarget;
  readonly observedMs: number;
  /** It came with a saved state, so other processes may have it too. */
  readonly isRestored?: boolean;
}

const KEPT_ROWS = 512;

export interface RecentRows {
  add(row: RecentRow): void;
  /** Oldest first. */
  list(): RecentRow[];
}

/** Keeps the last observed times, to be replayed through the next model. */
export function createRecentRows(): RecentRows {
  const rows: RecentRow[] = [];
  let next = 0;
  return {
    add(row) {
      rows[next % KEPT_ROWS] = row;
      next++;
    },
    list() {
      const first = Math.max(0, next - KEPT_ROWS);
      return Array.from({ length: next - first }, (_, i) => rows[(first + i) % KEPT_ROWS]!);
    },
  };
}
