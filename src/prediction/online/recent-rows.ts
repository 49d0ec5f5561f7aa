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

interface NumberedRow extends RecentRow {
  /** Its number among all rows of its server and target that were added, from 1 on. */
  readonly number: number;
}

/** A server and a target. */
export interface RowOwner {
  readonly server: number;
  readonly target: PredictionTarget;
}

/** Times that another process observed at a server. */
export interface OthersTimes {
  readonly events: number;
  /** How many of this process's newest times count as later than these. */
  readonly later: number;
}

/** How many of the newest rows are kept. */
export const NEWEST_ROWS = 1024;
/**
 * Of older rows, this many are kept for each server and target; they make up most of its fast mean. Times that other processes
 * observed since count among them, so that a replay does not bring back a fault that is over.
 */
const ROWS_OF_SERVER = 4;
/** The most older rows in all: the newest of each server and target come first, then the second of each, and so on. */
const MOST_OLDER_ROWS = 8192;

export interface RecentRows {
  add(row: RecentRow): void;
  /** Must be called when other processes have observed times of this server. */
  countOthers(owner: RowOwner, times: OthersTimes): void;
  /** Oldest first. */
  list(): readonly RecentRow[];
  /** Replaces all rows by these, oldest first. */
  replace(rows: readonly RecentRow[]): void;
}

/** `list` leaves out rows of a server whose number was given to another server. */
export function createRecentRows({ addressOf, capacity }: Pick<ServerIndex, 'addressOf' | 'capacity'>): RecentRows {
  let rows: NumberedRow[] = [];
  let keptCount = 0;
  const counts = createOwnerCounts(capacity);

  function drop(): void {
    rows = selectKept(rows, rankRows(rows, counts));
    keptCount = rows.length;
  }

  return {
    add(row) {
      rows.push({ ...row, number: counts.add(row) });
      if (rows.length >= keptCount + NEWEST_ROWS) drop();
    },
    replace(newRows) {
      rows = newRows.map((row) => ({ number: counts.add(row), ...row }));
      drop();
    },
    countOthers: (owner, times) => counts.addOthers(owner, times),
    list() {
      if (rows.length > keptCount) drop();
      return rows.filter(({ key }) => addressOf(key.server) === key.address);
    },
  };
}

function selectKept(rows: readonly NumberedRow[], ranks: Uint8Array): NumberedRow[] {
  const places = sharePlaces(ranks.subarray(0, Math.max(0, rows.length - NEWEST_ROWS)));
  const kept: NumberedRow[] = [];
  for (let i = rows.length - 1; i >= 0; i--)
    if (i >= rows.length - NEWEST_ROWS || places[ranks[i]!]!-- > 0) kept.push(rows[i]!);
  return kept.reverse();
}

/** How many times of the same server and target were observed after each row, here and by other processes; at most ROWS_OF_SERVER. */
function rankRows(rows: readonly NumberedRow[], counts: OwnerCounts): Uint8Array {
  const own = new Uint8Array(counts.length);
  const ranks = new Uint8Array(rows.length);
  for (let i = rows.length - 1; i >= 0; i--) {
    const owner = ownerOf(rows[i]!);
    ranks[i] = Math.min(ROWS_OF_SERVER, own[owner]! + counts.countOthersAfter(owner, rows[i]!.number));
    if (own[owner]! < ROWS_OF_SERVER) own[owner]!++;
  }
  return ranks;
}

/** How many older rows of each rank may stay. */
function sharePlaces(ranks: Uint8Array): Int32Array {
  const places = new Int32Array(ROWS_OF_SERVER + 1);
  for (let i = 0; i < ranks.length; i++) places[ranks[i]!]!++;
  places[ROWS_OF_SERVER] = 0;
  let left = MOST_OLDER_ROWS;
  for (let rank = 0; rank < ROWS_OF_SERVER; rank++) {
    places[rank] = Math.min(left, places[rank]!);
    left -= places[rank]!;
  }
  return places;
}

function ownerOf({ key, target }: RecentRow): number {
  return numberOf({ server: key.server, target });
}

/** The number of an owner; an unknown server is -1. */
function numberOf({ server, target }: RowOwner): number {
  return PREDICTION_TARGETS.length * (server + 1) + PREDICTION_TARGETS.indexOf(target);
}

type OwnerCounts = ReturnType<typeof createOwnerCounts>;

/** Numbers the rows of each server and target, and counts the times that other processes observed after each. */
function createOwnerCounts(servers: number) {
  const own = new Uint32Array(PREDICTION_TARGETS.length * (servers + 1));
  const others = new Map<number, { readonly after: number; readonly events: number }[]>();
  return {
    length: own.length,
    /** Returns the number of the row. */
    add: (row: RecentRow): number => ++own[ownerOf(row)]!,
    addOthers(of: RowOwner, { events, later }: OthersTimes): void {
      const owner = numberOf(of);
      const times = others.get(owner) ?? [];
      times.push({ after: own[owner]! - later, events });
      // ROWS_OF_SERVER later times are enough to drop every row before them.
      while (times.length > 1 && sumEvents(times.slice(1)) >= ROWS_OF_SERVER) times.shift();
      others.set(owner, times);
    },
    countOthersAfter(owner: number, number: number): number {
      const times = others.get(owner);
      return times === undefined ? 0 : sumEvents(times.filter(({ after }) => after >= number));
    },
  };
}

function sumEvents(times: readonly { readonly events: number }[]): number {
  return times.reduce((sum, { events }) => sum + events, 0);
}
