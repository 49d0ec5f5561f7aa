import { findTargetModel, type LatencyModel } from '../model/model.ts';
import { readRowOffsets, readServerOffset } from '../model/server-offsets.ts';
import { createSlotEvaluator, readMedian, type SlotEvaluator, toStatistic } from '../model/slot-evaluator.ts';
import { MODEL_COLUMNS } from '../schema/columns.ts';
import { clampMs } from '../schema/milliseconds.ts';
import { type MetricColumns, type ObservationTable, observedTimes, TARGETS } from '../schema/observation-table.ts';
import type { Answers } from './accuracy.ts';

const ROWS_AT_ONCE = 1024;

/** What this model, as it is, answers for these rows. */
export function answerRows(model: LatencyModel, table: ObservationTable, rows: readonly number[], answers: Answers) {
  const evaluators = new Map<number, SlotEvaluator>();
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE)
    for (const [podType, part] of groupByPodType(table, rows.slice(from, from + ROWS_AT_ONCE))) {
      let evaluator = evaluators.get(podType);
      if (evaluator === undefined) {
        evaluator = createPodTypeEvaluator(model, table.podTypes[podType]!);
        evaluators.set(podType, evaluator);
      }
      evaluator.evaluate(selectMetrics(table, part), (offsets, into) => into.set(readRowOffsets(offsets, table, part)));
      collectAnswers(evaluator, table, part, answers);
    }
}

function createPodTypeEvaluator(model: LatencyModel, podType: string): SlotEvaluator {
  const ttft = findTargetModel(model, podType, 'ttft');
  return createSlotEvaluator(ttft, findTargetModel(model, podType, 'tpot'), ROWS_AT_ONCE);
}

function collectAnswers(evaluator: SlotEvaluator, table: ObservationTable, rows: readonly number[], answers: Answers) {
  for (const target of TARGETS) {
    const observed = observedTimes(table, target);
    const { model } = evaluator[target];
    for (const [i, row] of rows.entries()) {
      if (!(observed[row]! > 0)) continue;
      const offset = readServerOffset(
        model.offsets,
        table.servers[table.server[row]!]!,
        table.podTypes[table.podType[row]!]!,
      );
      const predictedMs = clampMs(readMedian(evaluator[target], i) * Math.exp(offset));
      const p90Ms = toStatistic(model, 'p90', predictedMs);
      answers[target].push({ row, observedMs: observed[row]!, predictedMs, p90Ms });
    }
  }
}

function groupByPodType(table: ObservationTable, rows: readonly number[]): Map<number, number[]> {
  return Map.groupBy(rows, (row) => table.podType[row]!);
}

function selectMetrics(table: ObservationTable, rows: readonly number[]): MetricColumns {
  const columns = { count: rows.length } as MetricColumns;
  for (const name of MODEL_COLUMNS) columns[name] = Float64Array.from(rows, (row) => table[name][row]!);
  return columns;
}
