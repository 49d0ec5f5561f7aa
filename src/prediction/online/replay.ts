/** Replays the last observed times through a new version, whose residuals start again. */
import { readEstimate, type SlotEstimates } from '../model/slot-evaluator.ts';
import { createPredictColumns, MODEL_COLUMNS, type PredictColumns } from '../schema/columns.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
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
export function beginAgain({ tracker, recent, table }: ReplayedParts, targets = PREDICTION_TARGETS): void {
  tracker.clear(targets);
  replayRows(
    table,
    recent.list().filter(({ target }) => targets.includes(target)),
  );
}

/** The same for one target, without the rows of a restored state. */
export function beginWithoutRestored({ tracker, recent, table }: ReplayedParts, target: PredictionTarget): void {
  const rows = recent.list().filter((row) => row.target === target);
  const own = rows.filter(({ isRestored }) => !isRestored);
  if (own.length === rows.length) return;
  tracker.clear([target]);
  replayRows(table, own);
}

/** Updates the residuals of servers by these rows, oldest first. */
function replayRows(table: SlotTable, rows: readonly RecentRow[]): void {
  if (rows.length === 0) return;
  const columns = createPredictColumns(FIRST_CAPACITY);
  for (let start = 0; start < rows.length; start += FIRST_CAPACITY)
    replayPart(table, rows.slice(start, start + FIRST_CAPACITY), columns);
}

/** Replays the rows in their order; each slot estimates all of them in one call. */
function replayPart(table: SlotTable, rows: readonly RecentRow[], columns: PredictColumns): void {
  fillMetrics(columns, rows);
  const servers = Int32Array.from(rows, ({ key }) => key.server);
  const slots = rows.map(({ podType }) => table.find(podType, rows.length));
  const estimates = new Map<LiveSlot, SlotEstimates>();
  for (const slot of new Set(slots)) estimates.set(slot, slot.estimate(columns, servers));
  for (const [i, { target, key, observedMs }] of rows.entries()) {
    const slot = slots[i]!;
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
