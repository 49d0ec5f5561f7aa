/** Replays the newest observed times through a new version, since residuals are relative to a version. */
import { type Estimate, readEstimate } from '../model/slot-evaluator.ts';
import { createPredictColumns, MODEL_COLUMNS, type PredictColumns } from '../schema/columns.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import { type Moments, readMeans } from './known-before.ts';
import { FIRST_CAPACITY, type SlotModel } from './live-slot.ts';
import { NEWEST_ROWS, type RecentRow, type RecentRows } from './recent-rows.ts';
import type { ResidualTracker } from './residual-tracker.ts';
import type { SlotTable } from './slot-table.ts';

/** The parts of a live model that a replay changes or reads. */
export interface ReplayedParts {
  readonly tracker: ResidualTracker;
  readonly recent: RecentRows;
  readonly moments: Moments;
  readonly table: SlotTable;
}

/** The next model's estimate for each row, with the key of the slot that answers it. */
export type RowEstimates = Map<RecentRow, { readonly slot: string; readonly estimate: Estimate }>;

/** Residuals are relative to the served model, so those of another model are dropped, and recent rows are replayed. */
export function beginAgain(parts: ReplayedParts, targets = PREDICTION_TARGETS, known: RowEstimates = new Map()): void {
  parts.tracker.clear(targets);
  for (const target of targets) parts.moments.outdateMeans(target);
  replayRows(
    parts,
    parts.recent.list().filter(({ target }) => targets.includes(target)),
    known,
  );
}

/** The same for one target, without the rows of a restored state. */
export function beginWithoutRestored(parts: ReplayedParts, target: PredictionTarget): void {
  const rows = parts.recent.list().filter((row) => row.target === target);
  const own = rows.filter(({ isRestored }) => !isRestored);
  if (own.length === rows.length) return;
  parts.tracker.clear([target]);
  parts.moments.outdateMeans(target);
  replayRows(parts, own, new Map());
}

/** Updates the residuals of servers by these rows, oldest first. Rows without an estimate are estimated now. */
function replayRows({ tracker, moments, table }: ReplayedParts, rows: readonly RecentRow[], known: RowEstimates): void {
  const isKnown = (row: RecentRow): boolean => known.get(row)?.slot === table.keyOf(row.podType);
  for (const _ of estimateRows(
    rows.filter((row) => !isKnown(row)),
    { keyOf: (podType) => table.keyOf(podType), modelOf: (slot) => table.modelOf(slot), known },
  ));
  // Among older rows many are missing, so the means that are replayed there are not those of the moment.
  const since = moments.observedTimes - NEWEST_ROWS;
  for (const row of rows) {
    const { moment = -1, key, podType, target, observedMs } = row;
    if (moment >= Math.max(0, since)) moments.renew(moment, 'means', readMeans(tracker, row));
    table.find(podType, 1)[target].replay(known.get(row)!.estimate, key, observedMs);
  }
}

export interface EstimatedSlots {
  /** The key of the slot that answers for a pod type. */
  readonly keyOf: (podType: string) => string;
  readonly modelOf: (slot: string) => SlotModel;
  /** The estimates are added to this map. */
  readonly known: RowEstimates;
}

/** Each slot estimates the rows that it answers. Runs in steps of less than a millisecond. */
export function* estimateRows(
  rows: readonly RecentRow[],
  { keyOf, modelOf, known }: EstimatedSlots,
): Generator<void, void> {
  if (rows.length === 0) return;
  const columns = createPredictColumns(FIRST_CAPACITY);
  for (const [slot, ofSlot] of Map.groupBy(rows, ({ podType }) => keyOf(podType)))
    for (let start = 0; start < ofSlot.length; start += FIRST_CAPACITY) {
      const part = ofSlot.slice(start, start + FIRST_CAPACITY);
      fillMetrics(columns, part);
      const servers = Int32Array.from(part, ({ key }) => key.server);
      const estimates = modelOf(slot).estimate(columns, servers);
      for (const [i, row] of part.entries()) known.set(row, { slot, estimate: readEstimate(estimates[row.target], i) });
      yield;
    }
}

function fillMetrics(columns: PredictColumns, rows: readonly RecentRow[]): void {
  columns.count = rows.length;
  for (let m = 0; m < MODEL_COLUMNS.length; m++) {
    const column = columns[MODEL_COLUMNS[m]!];
    for (let i = 0; i < rows.length; i++) column[i] = rows[i]!.metrics[m]!;
  }
}
