/** Deletes rows past their time in batches, so that a million old rows do not delay the writes of others. */
import { isFailure } from '../errors.ts';
import type { World } from '../world.ts';
import { nameStatement, type Statement, statement } from './store.ts';

/** Rows that one statement changes at most. */
export const SWEEP_BATCH = 500;
/** Rows may be large, so the first batch is small; a batch that took long is followed by a smaller one. */
const FIRST_BATCH = 32;
const LONG_MS = 200;
const SHORT_MS = 50;
/** The pause between two batches, in which other writes get their turn. */
const PAUSE_MS = 20;

export interface DatedTable {
  readonly table: string;
  /** The columns of the primary key, since `ctid` and `rowid` are not portable. */
  readonly key: string;
  readonly time: string;
  /** Limits the sweep to rows whose column `kind` has this value: the index of the table begins with that column. */
  readonly kind?: string;
}

/** Deletes at most $2 rows, the oldest first, whose time is not after $1; returns a row for each. */
export function deleteOldSql({ table, key, time, kind }: DatedTable): Statement {
  const isOld = `${kind === undefined ? '' : `kind = '${kind}' AND `}${time} <= $1`;
  return statement(
    nameStatement('sweep', table, ...(kind?.split(' ') ?? [])),
    `DELETE FROM ${table} WHERE ${isOld}
       AND (${key}) IN (SELECT ${key} FROM ${table} WHERE ${isOld} ORDER BY ${time} LIMIT $2)
     RETURNING ${key}`,
  );
}

/** How batches follow each other. */
export interface SweepPace {
  readonly monotonicMs: () => number;
  /** Awaited between two batches. */
  readonly pause: () => Promise<void>;
}

/** How a sweep of several kinds proceeds, reports errors and is ended. */
export interface SweepContext extends SweepPace {
  /** Called with each kind that cannot be swept; if it throws, the sweep ends. */
  readonly onFailure: (kind: string, error: unknown) => void;
  /** Ends the sweep. */
  readonly signal?: AbortSignal;
}

/** The pace for a store that no other process uses. */
export const SWEEP_WITHOUT_PAUSES: SweepContext = {
  monotonicMs: () => 0,
  pause: async () => {},
  onFailure: (_, error) => {
    throw error;
  },
};

export function createSweepPace(world: World, signal?: AbortSignal): SweepPace {
  return { monotonicMs: () => world.monotonicMs(), pause: () => world.sleep(PAUSE_MS, signal) };
}

export function createSweepContext(
  world: World,
  onFailure: SweepContext['onFailure'],
  signal: AbortSignal,
): SweepContext {
  return { ...createSweepPace(world, signal), onFailure, signal };
}

/** Changes at most `limit` rows; returns how many. */
export type SweepBatch = (limit: number) => Promise<number>;

/** Repeats a batch until one is not full; returns how many rows it changed in all. */
export async function repeatBatches({ monotonicMs, pause }: SweepPace, batch: SweepBatch): Promise<number> {
  let limit = FIRST_BATCH;
  for (let count = 0; ; ) {
    const startMs = monotonicMs();
    const changed = await batch(limit);
    count += changed;
    if (changed < limit) return count;
    limit = chooseLimit(limit, monotonicMs() - startMs);
    await pause();
  }
}

function chooseLimit(limit: number, tookMs: number): number {
  if (tookMs > LONG_MS) return Math.max(1, Math.floor(limit / 2));
  return tookMs > SHORT_MS ? limit : Math.min(SWEEP_BATCH, limit * 2);
}

/**
 * Sweeps each kind, also after one that failed; returns the counts, 0 for one that failed. Throws `unavailable` if each kind fails with
 * it, and reports none: then the database is away. Where others can be swept, it comes of a damaged page or of conflicts, and is reported:
 * so are the kinds that are left when an outage begins, since damage of the last kinds looks the same.
 */
export async function sweepEach<Kind extends string>(
  { onFailure, signal }: SweepContext,
  sweeps: Readonly<Record<Kind, () => Promise<number>>>,
): Promise<Record<Kind, number>> {
  const counts: Partial<Record<Kind, number>> = {};
  const unavailable = new Map<Kind, unknown>();
  const entries = Object.entries(sweeps) as [Kind, () => Promise<number>][];
  for (const [kind, sweep] of entries) {
    try {
      counts[kind] = await sweep();
    } catch (error) {
      if (signal?.aborted) throw error;
      counts[kind] = 0;
      if (isUnavailable(error)) unavailable.set(kind, error);
      else onFailure(kind, error);
    }
  }
  for (const [kind, error] of unavailable) {
    if (unavailable.size === entries.length) throw error;
    onFailure(kind, error);
  }
  return counts as Record<Kind, number>;
}

function isUnavailable(error: unknown): boolean {
  return isFailure(error) && error.code === 'unavailable';
}
