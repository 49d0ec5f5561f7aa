/** Lists the training and test rows of each peer: those of our own protocols, and only rows that were reported by then. */
import { FOLDS_OF, type Fold, leaveRunsOut, splitInTime } from '../../src/prediction/evaluation/folds.ts';
import { listRefits } from '../../src/prediction/evaluation/prequential.ts';
import { createKnownAt, type KnownAt } from '../../src/prediction/evaluation/report-times.ts';
import {
  listRows,
  type ObservationTable,
  observedTimes,
  type PredictionTarget,
} from '../../src/prediction/schema/observation-table.ts';
import type { Cell } from './cells.ts';

/** A peer cannot predict before its first fit, so the rows before it are not among its test rows. */
export function planParts(table: ObservationTable, target: PredictionTarget, { protocol, reporting }: Cell): Fold[] {
  const knownAt = createKnownAt(table, reporting);
  const observed = observedTimes(table, target);
  const select = (rows: readonly number[], nowMs: (row: number) => number) =>
    rows.filter((row) => observed[row]! > 0 && isKnown(knownAt(row, target), nowMs(row)));
  const always = () => Number.MAX_VALUE;
  const plans: Readonly<Record<Cell['protocol'], () => Fold[]>> = {
    random: () => FOLDS_OF.random(table).map(({ train, test }) => ({ train: select(train, always), test })),
    'leave-run-out': () =>
      leaveRunsOut(table, undefined).map(({ train, test }) => ({ train: select(train, always), test })),
    time: () => {
      const { train, test, cutMsOfRun } = splitInTime(table);
      return [{ train: select(train, (row) => cutMsOfRun(table.run[row]!)), test }];
    },
    prequential: () => {
      const inTime = listRows(table);
      const refits = listRefits(inTime.length).filter((at) => at > 0);
      return refits.map((at, i) => ({
        train: select(inTime.slice(0, at), () => table.atMs[inTime[at] ?? 0]!),
        test: inTime.slice(at, refits[i + 1] ?? inTime.length),
      }));
    },
  };
  return plans[protocol]()
    .map(({ train, test }) => ({ train, test: test.filter((row) => observed[row]! > 0) }))
    .filter(({ train, test }) => train.length >= 10 && test.length > 0);
}

/** Without times in the source, all rows except lost ones. */
function isKnown(knownMs: ReturnType<KnownAt>, nowMs: number): boolean {
  return !(knownMs > nowMs) && knownMs < Number.POSITIVE_INFINITY;
}
