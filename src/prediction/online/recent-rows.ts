/** Keeps the latest observed times with their metrics for a replay, and what was known before each of them. */
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
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
  /** Undefined for a row of a saved state, and for one that is older than requests that are under way. */
  readonly before?: KnownBefore | undefined;
}

/** What this process knew before it learned from a row. */
export interface KnownBefore {
  /** How many times it had observed. */
  readonly observedTimes: number;
  /** Relative to the served model: a replay computes them again. */
  means: KnownMeans;
}

/** Enough for a thousand requests under way: a row for each of their two times. */
const NEWEST_ROWS = 2048;
/** Of older ones, a server keeps as many of each target as its fast mean remembers. */
const ROWS_OF_SERVER = 8;
/** A replay of all of them takes some milliseconds, in which no call is answered. */
const MOST_ROWS = 16_384;

export interface RecentRows {
  /** How many rows this process has added. */
  readonly observedTimes: number;
  /** `means` are those before the row is learned. */
  add(row: RecentRow, means: KnownMeans): void;
  /** Oldest first. */
  list(): readonly RecentRow[];
  /** Takes these in place of the rows that it has; the oldest comes first. */
  replace(rows: readonly RecentRow[]): void;
  /** The means of a server, its pod type and all pod types at an earlier moment. Absent are those that no kept row has changed since then. */
  findMeans(of: MeansKey, isLater: (before: KnownBefore) => boolean): Partial<KnownMeans>;
}

export function createRecentRows(): RecentRows {
  let rows: RecentRow[] = [];
  let keptCount = 0;
  let observedTimes = 0;

  function drop(): void {
    rows = selectKept(rows);
    keptCount = rows.length;
  }

  return {
    get observedTimes() {
      return observedTimes;
    },
    add(row, means) {
      rows.push({ ...row, before: { observedTimes, means } });
      observedTimes++;
      // Rows are dropped when they are twice as many as were kept, so that each costs the same.
      if (rows.length >= 2 * Math.max(NEWEST_ROWS, keptCount)) drop();
    },
    replace(newRows) {
      rows = [...newRows];
      drop();
    },
    list() {
      if (rows.length > keptCount) drop();
      return rows;
    },
    findMeans: (of, isLater) => findMeans(rows, of, isLater),
  };
}

/** The newest rows, and of older ones the newest few of each server and target. */
function selectKept(rows: readonly RecentRow[]): RecentRow[] {
  const counts = new Map<number, number>();
  const kept: RecentRow[] = [];
  for (let age = 0; age < rows.length && kept.length < MOST_ROWS; age++) {
    const row = rows[rows.length - 1 - age]!;
    const owner = PREDICTION_TARGETS.length * row.key.server + PREDICTION_TARGETS.indexOf(row.target);
    const count = counts.get(owner) ?? 0;
    counts.set(owner, count + 1);
    if (age < NEWEST_ROWS) kept.push(row);
    else if (count < ROWS_OF_SERVER) kept.push(row.before === undefined ? row : { ...row, before: undefined });
  }
  return kept.reverse();
}

type FoundMeans = { -readonly [Kind in keyof KnownMeans]?: KnownMeans[Kind] };

/** The first row of each owner after the moment has its means of that moment. */
function findMeans(rows: readonly RecentRow[], { key, target }: MeansKey, isLater: (before: KnownBefore) => boolean) {
  const found: FoundMeans = {};
  for (let i = rows.length - 1; i >= 0; i--) {
    const { before, key: changed, target: observed } = rows[i]!;
    if (before === undefined || !isLater(before)) break;
    if (observed !== target) continue;
    found.model = before.means.model;
    if (changed.podType === key.podType) found.podType = before.means.podType;
    if (changed.server === key.server) found.server = before.means.server;
  }
  return found;
}
