/** Keeps the latest observed times with their metrics for a replay, and what was known before each of them. */
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import type { ServerIndex } from '../schema/server-index.ts';
import type { PredictedInterval } from './intervals/interval-statistics.ts';
import type { KnownMeans, MeansKey } from './known-means.ts';
import type { MeansOwner, ServerKey } from './residual-tracker.ts';

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
  /** When it learned from the row. */
  readonly knownMs: number;
  /** The weights of the experts at the server. */
  readonly weights: readonly number[];
  /** The interval that a request like this one would have been promised. */
  readonly interval: DatedInterval;
  /** Relative to the served model: a replay computes them again. */
  means: KnownMeans;
}

/** The parts of an interval that move with each observed time. */
export type DatedInterval = Pick<
  PredictedInterval,
  'quantiles' | 'recentQuantiles' | 'observedBefore' | 'observedOfServerBefore'
>;

/** The first kept rows after a moment of a server, of its pod type and of all: what was known before them was known at the moment. */
export type LaterRows = Partial<Record<MeansOwner['kind'], KnownBefore>>;

/** The newest rows are kept: at least this many, and twice as many as are observed while a request is under way. */
const LEAST_NEWEST = 512;
/** The longest such time is forgotten by this factor with each row. */
const REACH_DECAY = 0.999;
/** Of older ones, a server keeps this many of each target, which are most of its fast mean. */
const ROWS_OF_SERVER = 4;
/** A replay of all of them takes some milliseconds, in which no call is answered. */
const MOST_ROWS = 8192;

export interface RecentRows {
  /** How many rows this process has added. */
  readonly observedTimes: number;
  /** Must be called before the row is learned. `sentAfter` is how many rows had been added when its request was sent. */
  add(row: RecentRow, before: Omit<KnownBefore, 'observedTimes'>, sentAfter: number): void;
  /** Oldest first. */
  list(): readonly RecentRow[];
  /** Takes these in place of the rows that it has; the oldest comes first. */
  replace(rows: readonly RecentRow[]): void;
  /** How many rows this process had added by this time of day. One before the newest rows counts as the first of these. */
  countBy(ms: number): number;
  /** The first rows after this number of them; absent are those of an owner that no row has changed since then. */
  findLater(of: MeansKey, observedTimes: number): LaterRows;
}

/** Rows of a server whose number was given away are left out. */
export function createRecentRows({ addressOf }: Pick<ServerIndex, 'addressOf'>): RecentRows {
  let rows: RecentRow[] = [];
  let keptCount = 0;
  let observedTimes = 0;
  let reach = 0;
  const countNewest = () => Math.min(MOST_ROWS, Math.max(LEAST_NEWEST, Math.ceil(2 * reach)));

  function drop(): void {
    rows = selectKept(rows, countNewest());
    keptCount = rows.length;
  }

  return {
    get observedTimes() {
      return observedTimes;
    },
    add(row, before, sentAfter) {
      reach = Math.max(REACH_DECAY * reach, observedTimes - sentAfter);
      rows.push({ ...row, before: { ...before, observedTimes } });
      observedTimes++;
      if (rows.length >= keptCount + countNewest()) drop();
    },
    replace(newRows) {
      rows = [...newRows];
      drop();
    },
    list() {
      if (rows.length > keptCount) drop();
      return rows.filter(({ key }) => addressOf(key.server) === key.address);
    },
    countBy: (ms) => countBy(rows, ms, observedTimes),
    findLater: (of, since) => findLater(rows, of, since),
  };
}

/** The newest rows, and of older ones the newest few of each server and target. */
function selectKept(rows: readonly RecentRow[], newest: number): RecentRow[] {
  const counts = new Map<number, number>();
  const kept: RecentRow[] = [];
  for (let age = 0; age < rows.length && kept.length < MOST_ROWS; age++) {
    const row = rows[rows.length - 1 - age]!;
    const owner = PREDICTION_TARGETS.length * row.key.server + PREDICTION_TARGETS.indexOf(row.target);
    const count = counts.get(owner) ?? 0;
    counts.set(owner, count + 1);
    if (age < newest) kept.push(row);
    else if (count < ROWS_OF_SERVER) kept.push(row.before === undefined ? row : { ...row, before: undefined });
  }
  return kept.reverse();
}

function findLater(rows: readonly RecentRow[], { key, target }: MeansKey, since: number): LaterRows {
  const later: { -readonly [Kind in keyof LaterRows]: LaterRows[Kind] } = {};
  for (let i = rows.length - 1; i >= 0; i--) {
    const { before, key: changed, target: observed } = rows[i]!;
    if (before === undefined || before.observedTimes < since) break;
    if (observed !== target) continue;
    later.model = before;
    if (changed.podType === key.podType) later.podType = before;
    if (changed.address === key.address) later.server = before;
  }
  return later;
}

/** How many rows had been added by this time, when `now` have been added. */
function countBy(rows: readonly RecentRow[], ms: number, now: number): number {
  let count = now;
  for (let i = rows.length - 1; i >= 0; i--) {
    const { before } = rows[i]!;
    if (before === undefined || before.knownMs <= ms) break;
    count = before.observedTimes;
  }
  return count;
}
