/** Removes inputs with a negative, infinite or NaN number from a Predict call, and counts them. A report with one is refused. */
import type { PredictColumns } from '../schema/columns.ts';
import { isUsableNumber } from '../schema/input-fields.ts';

/** Removes the inputs with an unusable number, and keeps the order of the others. Returns how many it removed. */
export function omitUnusableInputs(columns: PredictColumns): number {
  const { count, metrics } = columns;
  // Column by column, because nearly all calls have nothing to remove, and a loop over one array is fastest.
  if (metrics.every((column) => isUsableColumn(column, count))) return 0;
  let kept = 0;
  for (let row = 0; row < count; row++) {
    if (!metrics.every((column) => isUsableNumber(column[row]!))) continue;
    if (kept !== row) moveRow(columns, row, kept);
    kept += 1;
  }
  columns.count = kept;
  return count - kept;
}

function isUsableColumn(column: Float64Array, count: number): boolean {
  for (let row = 0; row < count; row++) if (!isUsableNumber(column[row]!)) return false;
  return true;
}

function moveRow(columns: PredictColumns, from: number, to: number): void {
  for (const column of columns.metrics) column[to] = column[from]!;
  columns.inputId[to] = columns.inputId[from]!;
  columns.podType[to] = columns.podType[from]!;
  columns.serverIpStart[to] = columns.serverIpStart[from]!;
  columns.serverIpLength[to] = columns.serverIpLength[from]!;
}
