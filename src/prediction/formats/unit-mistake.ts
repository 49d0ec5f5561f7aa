/** Finds times in another unit than milliseconds, such as seconds. */
import { median } from '../model/calibration.ts';
import { type ObservationTable, observedTimes, type PredictionTarget, rowsWith } from '../schema/observation-table.ts';

/** No known server typically gives the first token within a millisecond, or 5,000 tokens a second to each request. */
const LEAST_MS: Readonly<Record<PredictionTarget, number>> = { ttft: 1, tpot: 0.2 };
/** No real server takes this long for each token. */
const MOST_TPOT_MS = 5000;

/** Returns a sentence about the mistake; undefined when the times may well be milliseconds. */
export function findUnitMistake(table: ObservationTable): string | undefined {
  const [ttftMs, tpotMs] = [typicalMs(table, 'ttft'), typicalMs(table, 'tpot')];
  if (ttftMs < LEAST_MS.ttft || tpotMs < LEAST_MS.tpot)
    return `Are the times in seconds? They must be in milliseconds: ${describe(ttftMs, tpotMs)}`;
  if (tpotMs > MOST_TPOT_MS)
    return `Are the times in microseconds? They must be in milliseconds: ${describe(ttftMs, tpotMs)}`;
  return undefined;
}

/** Returns the median; NaN without observations. */
function typicalMs(table: ObservationTable, target: PredictionTarget): number {
  const observed = observedTimes(table, target);
  const rows = rowsWith(table, target);
  return rows.length === 0 ? Number.NaN : median(Float64Array.from(rows, (row) => observed[row]!).sort());
}

function describe(ttftMs: number, tpotMs: number): string {
  const parts = [
    ...(Number.isNaN(ttftMs) ? [] : [`a first token typically takes ${format(ttftMs)} ms`]),
    ...(Number.isNaN(tpotMs) ? [] : [`each further token ${format(tpotMs)} ms`]),
  ];
  return parts.join(', ');
}

function format(ms: number): string {
  return String(Number(ms.toPrecision(2)));
}
