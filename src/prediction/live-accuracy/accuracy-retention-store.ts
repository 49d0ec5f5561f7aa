/** Decides how long the live accuracy is kept, and deletes older rows. */
import type { Statement, Store } from '../../database/store.ts';
import {
  deleteOldSql,
  repeatBatches,
  SWEEP_WITHOUT_PAUSES,
  type SweepContext,
  sweepEach,
} from '../../database/sweep.ts';
import type { SumsKind } from './accuracy-recorder.ts';
import { COUNTS_KEY, type MergedTableName, PART_COUNTS_KEY, SUMS_KEY } from './accuracy-store.ts';

const KEEP_ACCURACY_MS = 30 * 24 * 3_600_000;

const old = (table: MergedTableName, key: readonly string[], kind?: SumsKind): Statement =>
  deleteOldSql({ table, key: key.join(', '), time: 'start_ms', ...(kind && { kind }) });

const DELETES = {
  podTypeSums: old('accuracy_sums', SUMS_KEY, 'pod type'),
  serverSums: old('accuracy_sums', SUMS_KEY, 'server'),
  podTypeCounts: old('error_counts', PART_COUNTS_KEY, 'pod type'),
  serverCounts: old('error_counts', PART_COUNTS_KEY, 'server'),
  // Written by older programs only.
  modelCounts: old('accuracy_counts', COUNTS_KEY),
} as const;

type Kind = keyof typeof DELETES;

export const ACCURACY_KINDS = Object.keys(DELETES);

/** Returns how many rows of each kind are deleted. */
export async function forgetAccuracy(
  store: Store,
  nowMs: number,
  sweeping: SweepContext = SWEEP_WITHOUT_PAUSES,
): Promise<Record<Kind, number>> {
  const untilMs = nowMs - KEEP_ACCURACY_MS - 1;
  const sweeps = Object.entries<Statement>(DELETES).map(([kind, deleteSql]) => {
    const batch = async (limit: number) => (await store.write(deleteSql, [untilMs, limit])).length;
    return [kind, () => repeatBatches(sweeping, batch)] as const;
  });
  return await sweepEach(sweeping, Object.fromEntries(sweeps) as Record<Kind, () => Promise<number>>);
}
