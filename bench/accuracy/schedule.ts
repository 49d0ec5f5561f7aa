/** Which rows each peer learns from and which it is judged on: those of our own protocols, and only what was known then. */
import { listRefits } from '../../src/prediction/evaluation/prequential.ts';
import { createKnownAt } from '../../src/prediction/evaluation/report-times.ts';
import { type ObservationTable, observedTimes, type Target } from '../../src/prediction/schema/observation-table.ts';

export interface Part {
  readonly learn: readonly number[];
  readonly judge: readonly number[];
}

export type BenchProtocol = 'time' | 'prequential';

/** A peer that cannot predict before its first fit is not judged on the rows before. */
export function planParts(table: ObservationTable, target: Target, protocol: BenchProtocol): Part[] {
  const inTime = listInTime(table);
  const knownAt = createKnownAt(table);
  const observed = observedTimes(table, target);
  const select = (rows: readonly number[], nowMs: (row: number) => number) =>
    rows.filter((row) => observed[row]! > 0 && !(knownAt(row, target) > nowMs(row)));
  if (protocol === 'time') {
    const { learn, judge, cutMsOf } = splitRuns(table, inTime);
    return [
      { learn: select(learn, (row) => cutMsOf(table.run[row]!)), judge: judge.filter((row) => observed[row]! > 0) },
    ];
  }
  const refits = listRefits(inTime.length).filter((at) => at > 0);
  return refits
    .map((at, i) => ({
      learn: select(inTime.slice(0, at), () => table.atMs[inTime[at] ?? 0]!),
      judge: inTime.slice(at, refits[i + 1] ?? inTime.length).filter((row) => observed[row]! > 0),
    }))
    .filter(({ learn, judge }) => learn.length >= 10 && judge.length > 0);
}

function listInTime(table: ObservationTable): number[] {
  const rows = Array.from({ length: table.count }, (_, row) => row);
  if (table.atMs.subarray(0, table.count).some(Number.isNaN)) return rows;
  return rows.sort((a, b) => table.atMs[a]! - table.atMs[b]! || a - b);
}

function splitRuns(table: ObservationTable, inTime: readonly number[]) {
  const learn: number[] = [];
  const judge: number[] = [];
  const cutMs = new Map<number, number>();
  for (const [run, rows] of Map.groupBy(inTime, (row) => table.run[row]!)) {
    const cut = Math.floor(0.7 * rows.length);
    learn.push(...rows.slice(0, cut));
    judge.push(...rows.slice(cut));
    cutMs.set(run, table.atMs[rows[cut]!]!);
  }
  return { learn, judge, cutMsOf: (run: number) => cutMs.get(run)! };
}
