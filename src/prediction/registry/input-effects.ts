/**
 * Measures which inputs matter (permutation importance) and how each changes the prediction. Two questions:
 *
 * - Which inputs matter? Permutation importance (Breiman 2001): how much the mean error grows when the values of one input are
 *   shuffled among the rows. The gain of the trees is no measure, because physics has no gain and one input is in several features.
 * - What does a load cost? Partial dependence (Friedman 2001): the median prediction when every row has this value of one input.
 *   That breaks the correlation with other inputs, so only values that samples have are used.
 *
 * The shuffles have a fixed seed, so that every process computes the same from the same samples.
 */
import { setImmediate as letOthersWork } from 'node:timers/promises';
import { measureAccuracy } from '../evaluation/accuracy.ts';
import { createRowAnswerer, type RowAnswerer } from '../evaluation/offline-answers.ts';
import type { LatencyModel } from '../model/model.ts';
import { METRICS, type MetricColumn } from '../schema/input-fields.ts';
import {
  type ObservationTable,
  PREDICTION_TARGETS,
  type PredictionTarget,
  selectRows,
} from '../schema/observation-table.ts';

export interface InputEffects {
  readonly rows: number;
  readonly targets: readonly TargetEffects[];
}

export interface TargetEffects {
  readonly target: PredictionTarget;
  /** Mean error of the version on the samples, in percent. */
  readonly mape: number;
  /** Sorted, the most important input first. */
  readonly importance: readonly { readonly field: string; readonly mapeAdded: number }[];
  readonly prices: readonly Price[];
}

/** The median prediction for each value of one input, set in all samples. */
export interface Price {
  readonly field: string;
  readonly points: readonly { readonly value: number; readonly ms: number }[];
}

/** Loads, by which a router can choose a server, and the length of the prompt, which is the same for all servers. */
const PRICED: readonly MetricColumn[] = ['numRequestRunning', 'numRequestWaiting', 'kvCacheUsage', 'inputTokenLength'];
const LEVELS = [0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98];
/** How many rows are predicted in one turn of the event loop: less than a millisecond. */
const ROWS_OF_A_TURN = 32;

/** Works in many turns of the event loop. `table` has samples, each with at least one time. */
export async function measureInputEffects(model: LatencyModel, table: ObservationTable): Promise<InputEffects> {
  const answerer = createRowAnswerer(model, ROWS_OF_A_TURN);
  const before = await answer(answerer, table);
  const importance = new Map<MetricColumn, Answered>();
  const prices = new Map<MetricColumn, readonly PricePoint[]>();
  for (const { column } of METRICS) {
    if (isConstant(table, column)) continue;
    importance.set(column, await answer(answerer, withColumn(table, column, dealAround(table, column))));
    if (PRICED.includes(column)) prices.set(column, await priceColumn(answerer, table, column));
  }
  return {
    rows: table.count,
    targets: PREDICTION_TARGETS.flatMap((target) => describeTarget(target, { before, importance, prices })),
  };
}

interface Answered {
  readonly mape: Readonly<Record<PredictionTarget, number | undefined>>;
  /** The median prediction, in milliseconds. */
  readonly ms: Readonly<Record<PredictionTarget, number>>;
}

interface PricePoint extends Answered {
  readonly value: number;
}

interface Measured {
  readonly before: Answered;
  readonly importance: ReadonlyMap<MetricColumn, Answered>;
  readonly prices: ReadonlyMap<MetricColumn, readonly PricePoint[]>;
}

function describeTarget(target: PredictionTarget, { before, importance, prices }: Measured): TargetEffects[] {
  const mape = before.mape[target];
  if (mape === undefined) return [];
  const added = [...importance].map(([column, after]) => ({
    field: nameOf(column),
    mapeAdded: (after.mape[target] ?? mape) - mape,
  }));
  return [
    {
      target,
      mape,
      importance: added.sort((a, b) => b.mapeAdded - a.mapeAdded),
      prices: [...prices].map(([column, points]) => ({
        field: nameOf(column),
        points: points.map(({ value, ms }) => ({ value, ms: ms[target] })),
      })),
    },
  ];
}

async function priceColumn(
  answerer: RowAnswerer,
  table: ObservationTable,
  column: MetricColumn,
): Promise<PricePoint[]> {
  const points: PricePoint[] = [];
  for (const value of listValues(table, column)) {
    const same = new Float64Array(table.count).fill(value);
    points.push({ value, ...(await answer(answerer, withColumn(table, column, same))) });
  }
  return points;
}

/** Lists values of an input: quantiles of the samples. */
function listValues(table: ObservationTable, column: MetricColumn): number[] {
  const sorted = table[column].slice(0, table.count).sort();
  return [...new Set(LEVELS.map((level) => sorted[Math.floor(level * (sorted.length - 1))]!))];
}

async function answer(answerer: RowAnswerer, table: ObservationTable): Promise<Answered> {
  const answers = { ttft: [], tpot: [] };
  for (let from = 0; from < table.count; from += ROWS_OF_A_TURN) {
    const rows = Array.from({ length: Math.min(ROWS_OF_A_TURN, table.count - from) }, (_, i) => from + i);
    answerer.answer(table, rows, answers);
    await letOthersWork();
  }
  return {
    mape: { ttft: measureAccuracy(answers.ttft)?.mape, tpot: measureAccuracy(answers.tpot)?.mape },
    ms: { ttft: findMedian(answers.ttft), tpot: findMedian(answers.tpot) },
  };
}

function findMedian(answers: readonly { readonly predictedMs: number }[]): number {
  const sorted = answers.map(({ predictedMs }) => predictedMs).sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

function withColumn(table: ObservationTable, column: MetricColumn, values: Float64Array): ObservationTable {
  const changed = selectRows(
    table,
    Array.from({ length: table.count }, (_, row) => row),
  );
  changed[column].set(values);
  return changed;
}

function isConstant(table: ObservationTable, column: MetricColumn): boolean {
  const values = table[column].subarray(0, table.count);
  return values.every((value) => value === values[0]);
}

/** Shuffles by Fisher and Yates with the generator mulberry32, the same in every process. */
function dealAround(table: ObservationTable, column: MetricColumn): Float64Array {
  const values = table[column].slice(0, table.count);
  let state = 1;
  for (let i = values.length - 1; i > 0; i -= 1) {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    const j = ((mixed ^ (mixed >>> 14)) >>> 0) % (i + 1);
    [values[i], values[j]] = [values[j]!, values[i]!];
  }
  return values;
}

function nameOf(column: MetricColumn): string {
  return METRICS.find((metric) => metric.column === column)?.name ?? column;
}
