/** Predicts rows with a fixed model, without learning between them. */
import { findTimeModel, type LatencyModel, type TimeModel } from '../model/model.ts';
import { readRowOffsets } from '../model/server-offsets.ts';
import {
  createSlotEvaluator,
  readMedian,
  type SlotEvaluator,
  type TargetEstimates,
  toStatistic,
} from '../model/slot-evaluator.ts';
import { MODEL_COLUMNS } from '../schema/columns.ts';
import { clampMs } from '../schema/milliseconds.ts';
import {
  type MetricColumns,
  type ObservationTable,
  observedTimes,
  PREDICTION_TARGETS,
} from '../schema/observation-table.ts';
import type { Answer, Answers } from './accuracy.ts';

const ROWS_AT_ONCE = 1024;

/** Predicts these rows with the fixed model, and adds the predictions to `answers`. */
export function answerRows(model: LatencyModel, table: ObservationTable, rows: readonly number[], answers: Answers) {
  const answerer = createRowAnswerer(model, ROWS_AT_ONCE);
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE)
    answerer.answer(table, rows.slice(from, from + ROWS_AT_ONCE), answers);
}

export interface RowAnswerer {
  /** Predicts rows, at most `capacity` of them. */
  answer(table: ObservationTable, rows: readonly number[], answers: Answers): void;
}

export function createRowAnswerer(model: LatencyModel, capacity: number): RowAnswerer {
  const evaluators = new Map<string, SlotEvaluator>();
  const findEvaluator = (podType: string): SlotEvaluator => {
    const known = evaluators.get(podType) ?? createPodTypeEvaluator(model, podType, capacity);
    evaluators.set(podType, known);
    return known;
  };
  return {
    answer(table, rows, answers) {
      for (const [podType, part] of groupByPodType(table, rows)) {
        const evaluator = findEvaluator(table.podTypes[podType]!);
        const offsetColumns = evaluator.offsetInputs.map((offsets) => readRowOffsets(offsets, table, part));
        const estimates = evaluator.evaluate(selectMetrics(table, part), offsetColumns);
        for (const target of PREDICTION_TARGETS)
          answers[target].push(...listAnswers(evaluator.models[target], estimates[target], { table, rows: part }));
      }
    },
  };
}

function createPodTypeEvaluator(model: LatencyModel, podType: string, capacity: number): SlotEvaluator {
  const ttft = findTimeModel(model, podType, 'ttft');
  return createSlotEvaluator(ttft, findTimeModel(model, podType, 'tpot'), capacity);
}

interface TableRows {
  readonly table: ObservationTable;
  readonly rows: readonly number[];
}

function listAnswers(model: TimeModel, estimates: TargetEstimates, { table, rows }: TableRows): Answer[] {
  const observed = observedTimes(table, model.physics.target);
  const offsets = readRowOffsets(model.offsets, table, rows);
  return rows.flatMap((row, i) => {
    if (!(observed[row]! > 0)) return [];
    const predictedMs = clampMs(readMedian(estimates, i) * Math.exp(offsets[i]!));
    return [{ row, observedMs: observed[row]!, predictedMs, p90Ms: toStatistic(model, 'p90', predictedMs) }];
  });
}

function groupByPodType(table: ObservationTable, rows: readonly number[]): Map<number, number[]> {
  return Map.groupBy(rows, (row) => table.podType[row]!);
}

function selectMetrics(table: ObservationTable, rows: readonly number[]): MetricColumns {
  const columns = { count: rows.length } as MetricColumns;
  for (const name of MODEL_COLUMNS) columns[name] = Float64Array.from(rows, (row) => table[name][row]!);
  return columns;
}
