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
  /** Keeps the newest of these rows alone; the oldest comes first. */
  replace(rows: readonly RecentRow[]): void;
}

/** Keeps the last observed times, to be replayed through the next model. */
export function createRecentRows(): RecentRows {
  const rows: RecentRow[] = [];
  let next = 0;

  function add(row: RecentRow): void {
    rows[next % KEPT_ROWS] = row;
    next++;
  }

  return {
    add,
    replace(newRows) {
      rows.length = 0;
      next = 0;
      for (const row of newRows.slice(-KEPT_ROWS)) add(row);
    },
    list() {
      const first = Math.max(0, next - KEPT_ROWS);
      return Array.from({ length: next - first }, (_, i) => rows[(first + i) % KEPT_ROWS]!);
    },
  };
}
