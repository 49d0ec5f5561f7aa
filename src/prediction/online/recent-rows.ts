/** Keeps the latest observed times with their metrics for a replay, and what was known before each of them. */
import type { PredictionTarget } from '../schema/observation-table.ts';
import type { KnownMeans, MeansKey } from './known-means.ts';
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
  /** Undefined for a row of a saved state. */
  readonly before?: KnownBefore;
}

/** What this process knew before it learned from a row. */
export interface KnownBefore {
  /** How many times it had observed. */
  readonly observedTimes: number;
  /** Relative to the served model: a replay computes them again. */
  means: KnownMeans;
}

/** Enough for a thousand requests under way: a row for each of their two times. */
const KEPT_ROWS = 2048;

export interface RecentRows {
  /** How many rows this process has added. */
  readonly observedTimes: number;
  /** `means` are those before the row is learned. */
  add(row: RecentRow, means: KnownMeans): void;
  /** Oldest first. */
  list(): RecentRow[];
  /** Keeps the newest of these rows alone; the oldest comes first. */
  replace(rows: readonly RecentRow[]): void;
  /** The means of a server, its pod type and all pod types at an earlier moment. Absent are those that no kept row has changed since then. */
  findMeans(of: MeansKey, isLater: (before: KnownBefore) => boolean): Partial<KnownMeans>;
}

export function createRecentRows(): RecentRows {
  const rows: RecentRow[] = [];
  let next = 0;
  let observedTimes = 0;

  function keep(row: RecentRow): void {
    rows[next % KEPT_ROWS] = row;
    next++;
  }

  return {
    get observedTimes() {
      return observedTimes;
    },
    add(row, means) {
      keep({ ...row, before: { observedTimes, means } });
      observedTimes++;
    },
    replace(newRows) {
      rows.length = 0;
      next = 0;
      for (const row of newRows.slice(-KEPT_ROWS)) keep(row);
    },
    list() {
      const first = Math.max(0, next - KEPT_ROWS);
      return Array.from({ length: next - first }, (_, i) => rows[(first + i) % KEPT_ROWS]!);
    },
    findMeans({ key, target }, isLater) {
      const found: { -readonly [Kind in keyof KnownMeans]?: KnownMeans[Kind] } = {};
      for (let i = next - 1; i >= Math.max(0, next - KEPT_ROWS); i--) {
        const row = rows[i % KEPT_ROWS]!;
        if (row.before === undefined || !isLater(row.before)) break;
        if (row.target !== target) continue;
        const { means } = row.before;
        found.model = means.model;
        if (row.key.podType === key.podType) found.podType = means.podType;
        if (row.key.server === key.server) found.server = means.server;
      }
      return found;
    },
  };
}
