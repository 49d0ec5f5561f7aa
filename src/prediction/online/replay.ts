/** Replays the last observed times through a new version, whose residuals start again. */
import { readEstimate, type SlotEstimates } from '../model/slot-evaluator.ts';
import { createPredictColumns, MODEL_COLUMNS, type PredictColumns } from '../schema/columns.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import { readKnownMeans } from './known-means.ts';
import { FIRST_CAPACITY, type LiveSlot } from './live-slot.ts';
import type { RecentRow, RecentRows } from './recent-rows.ts';
import type { ResidualTracker } from './residual-tracker.ts';
import type { SlotTable } from './slot-table.ts';

/** The parts of a live model that a replay changes or reads. */
export interface ReplayedParts {
  readonly tracker: ResidualTracker;
  readonly recent: RecentRows;
  readonly table: SlotTable;
}

/** Residuals are relative to the served model, so those of another model are dropped, and recent rows are replayed. */
export function beginAgain(parts: ReplayedParts, targets = PREDICTION_TARGETS): void {
  parts.tracker.clear(targets);
  replayRows(
    parts,
    parts.recent.list().filter(({ target }) => targets.includes(target)),
  );
}

/** The same for one target, without the rows of a restored state. */
export function beginWithoutRestored(parts: ReplayedParts, target: PredictionTarget): void {
  const rows = parts.recent.list().filter((row) => row.target === target);
  const own = rows.filter(({ isRestored }) => !isRestored);
  if (own.length === rows.length) return;
  parts.tracker.clear([target]);
  replayRows(parts, own);
}

/** Updates the residuals of servers by these rows, oldest first. */
function replayRows(parts: ReplayedParts, rows: readonly RecentRow[]): void {
  if (rows.length === 0) return;
  const columns = createPredictColumns(FIRST_CAPACITY);
  for (let start = 0; start < rows.length; start += FIRST_CAPACITY)
    replayPart(parts, rows.slice(start, start + FIRST_CAPACITY), columns);
}

/** Replays the rows in their order; each slot estimates all of them in one call. */
function replayPart({ tracker, table }: ReplayedParts, rows: readonly RecentRow[], columns: PredictColumns): void {
  fillMetrics(columns, rows);
  const servers = Int32Array.from(rows, ({ key }) => key.server);
  const slots = rows.map(({ podType }) => table.find(podType, rows.length));
  const estimates = new Map<LiveSlot, SlotEstimates>();
  for (const slot of new Set(slots)) estimates.set(slot, slot.estimate(columns, servers));
  for (const [i, { target, key, observedMs, before }] of rows.entries()) {
    const slot = slots[i]!;
    if (before !== undefined) before.means = readKnownMeans(tracker, { key, target });
    slot[target].replay(readEstimate(estimates.get(slot)![target], i), key, observedMs);
  }
}

function fillMetrics(columns: PredictColumns, rows: readonly RecentRow[]): void {
  columns.count = rows.length;
  for (let m = 0; m < MODEL_COLUMNS.length; m++) {
    const column = columns[MODEL_COLUMNS[m]!];
    for (let i = 0; i < rows.length; i++) column[i] = rows[i]!.metrics[m]!;
  }
}
