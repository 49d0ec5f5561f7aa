/** Keeps the observed times that a replay needs, with their metrics: the newest ones, and a few of each server. */
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import type { ServerIndex } from '../schema/server-index.ts';
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
  /** The number of the note of what was known before it; undefined for a row of a saved state. */
  readonly moment?: number;
}

/** The newest rows are kept. */
export const NEWEST_ROWS = 1024;
/** Of older ones, a server keeps this many of each target, which are most of its fast mean. */
const ROWS_OF_SERVER = 4;
/** In all, these are at most this many: the newest of each server and target come first, then the second of each, and so on. */
const MOST_OLDER_ROWS = 8192;

export interface RecentRows {
  add(row: RecentRow): void;
  /** Oldest first. */
  list(): readonly RecentRow[];
  /** Takes these in place of the rows that it has; the oldest comes first. */
  replace(rows: readonly RecentRow[]): void;
}

/** Rows of a server whose number was given away are left out. */
export function createRecentRows({ addressOf }: Pick<ServerIndex, 'addressOf'>): RecentRows {
  let rows: RecentRow[] = [];
  let keptCount = 0;

  function drop(): void {
    rows = selectKept(rows);
    keptCount = rows.length;
  }

  return {
    add(row) {
      rows.push(row);
      if (rows.length >= keptCount + NEWEST_ROWS) drop();
    },
    replace(newRows) {
      rows = [...newRows];
      drop();
    },
    list() {
      if (rows.length > keptCount) drop();
      return rows.filter(({ key }) => addressOf(key.server) === key.address);
    },
  };
}

function selectKept(rows: readonly RecentRow[]): RecentRow[] {
  const ranks = rankRows(rows);
  const places = sharePlaces(ranks.subarray(0, Math.max(0, rows.length - NEWEST_ROWS)));
  const kept: RecentRow[] = [];
  for (let i = rows.length - 1; i >= 0; i--) {
    const isNewest = i >= rows.length - NEWEST_ROWS;
    if (isNewest || places[ranks[i]!]!-- > 0) kept.push(rows[i]!);
  }
  return kept.reverse();
}

/** How many times of the same server and target were observed after each row. */
function rankRows(rows: readonly RecentRow[]): Uint32Array {
  const counts = new Map<number, number>();
  const ranks = new Uint32Array(rows.length);
  for (let i = rows.length - 1; i >= 0; i--) {
    const { key, target } = rows[i]!;
    const owner = PREDICTION_TARGETS.length * key.server + PREDICTION_TARGETS.indexOf(target);
    ranks[i] = counts.get(owner) ?? 0;
    counts.set(owner, ranks[i]! + 1);
  }
  return ranks;
}

/** How many older rows of each rank may stay. */
function sharePlaces(ranks: Uint32Array): number[] {
  const places: number[] = [];
  let left = MOST_OLDER_ROWS;
  for (let rank = 0; rank < ROWS_OF_SERVER; rank++) {
    const count = ranks.reduce((sum, each) => sum + (each === rank ? 1 : 0), 0);
    places.push(Math.min(left, count));
    left -= places[rank]!;
  }
  return places;
}
