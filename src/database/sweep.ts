/** Deletes expired rows in batches, so that a million old rows do not delay other writes. */
import { isFailure } from '../errors.ts';
import type { World } from '../world.ts';
import { nameStatement, type Statement, statement } from './store.ts';

/** The most rows that one statement changes. */
export const SWEEP_BATCH = 500;
/** The size of the first batch: rows may be large, so it is small. After a slow batch, the next one is smaller. */
const FIRST_BATCH = 32;
const LONG_MS = 200;
const SHORT_MS = 50;
/** The pause between two batches, in which other writes can run. */
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

/** The pace of the batches. */
export interface SweepPace {
  readonly monotonicMs: () => number;
  /** Awaited between two batches. */
  readonly pause: () => Promise<void>;
}

/** The options of a sweep of several kinds. */
export interface SweepContext extends SweepPace {
  /** Called for each kind that cannot be swept; if it throws, the sweep ends. */
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
 * Sweeps each kind, also after a failed one; returns the counts, 0 for a failed kind. If every kind fails with `unavailable`, it throws
 * that error and reports none: the database is away. If only some kinds fail with it, the cause is a damaged page or conflicts, and
 * they are reported. So are the kinds that remain when an outage begins, since damage of the last kinds looks the same.
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
