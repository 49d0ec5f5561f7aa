/** Predicts each row from the rows before it, then learns from it (prequential evaluation). */
import { createPriorModel } from '../model/model.ts';
import type { Forecast } from '../online/forecasts.ts';
import { createLiveModel, type LiveModel } from '../online/live-model.ts';
import { forecastP90Ms } from '../online/target-predictor.ts';
import { MODEL_COLUMNS } from '../schema/columns.ts';
import {
  type MetricColumns,
  type ObservationTable,
  observedTimes,
  PREDICTION_TARGETS,
  type PredictionTarget,
  selectRows,
} from '../schema/observation-table.ts';
import { createEventQueue } from '../simulator/event-queue.ts';
import { type TrainParameters, trainModel } from '../training/train-model.ts';
import type { Answers } from './accuracy.ts';
import { createKnownAt, type KnownAt, type Reporting } from './report-times.ts';

const REFIT_EVERY = 100;
/**
 * The share of new rows after which the model of a long recording is refitted: the cost of a refit grows with the rows, and 100 new
 * rows after 100,000 change nothing.
 */
const REFIT_SHARE = 0.02;
/** A service without a model learns its first versions after this many rows. */
const FIRST_REFITS = [30, 60];

/** Predicts each row from the rows before it, then learns from it. Refits after every 100 rows, or 2 % more if that is more. */
export function answerPrequentially(
  table: ObservationTable,
  rows: readonly number[],
  {
    parameters,
    onProgress,
    answers,
    reporting,
  }: {
    readonly parameters: TrainParameters;
    readonly onProgress: (text: string) => void;
    readonly answers: Answers;
    readonly reporting?: Reporting | undefined;
  },
): void {
  const knownAt = createKnownAt(table, reporting);
  const live = createLiveModel(createPriorModel());
  const answer = createLiveAnswerer(live, table, { answers, knownAt });
  const refits = listRefits(rows.length);
  for (const [i, at] of refits.entries()) {
    onProgress(`prequential: ${at} of ${rows.length} rows`);
    if (at > 0) {
      const nowMs = table.atMs[rows[at] ?? 0]!;
      const known = selectKnownBy(table, rows.slice(0, at), { knownAt, nowMsOfRun: () => nowMs });
      live.replaceModel(trainModel('evaluated@1', known, parameters));
    }
    answer(rows.slice(at, refits[i + 1] ?? rows.length));
  }
}

export function listRefits(rowCount: number): number[] {
  const refits = [0, ...FIRST_REFITS];
  for (let at = REFIT_EVERY; at < rowCount; at += Math.max(REFIT_EVERY, Math.floor(REFIT_SHARE * at))) refits.push(at);
  return refits;
}

/** Returns the rows as a service knew them at a time of each run, without times that became known later. */
export function selectKnownBy(
  table: ObservationTable,
  rows: readonly number[],
  { knownAt, nowMsOfRun }: { readonly knownAt: KnownAt; readonly nowMsOfRun: (run: number) => number },
): ObservationTable {
  const known = selectRows(table, rows);
  for (const [i, row] of rows.entries())
    for (const target of PREDICTION_TARGETS)
      if (isUnknown(knownAt(row, target), nowMsOfRun(table.run[row]!))) observedTimes(known, target)[i] = Number.NaN;
  return known;
}

/** Returns true if a time is unknown at `nowMs`. At infinity, only times that are never reported are unknown. */
function isUnknown(knownMs: number, nowMs: number): boolean {
  return knownMs > nowMs || knownMs === Number.POSITIVE_INFINITY;
}

interface Coming {
  readonly forecast: Forecast;
  readonly target: PredictionTarget;
  readonly observedMs: number;
  readonly outputTokens: number | undefined;
}

/**
 * Predicts rows one after the other, in one call or several, as a running service would. The times of a row change the live state
 * once they are known. If rows have times, all requests that started earlier are answered before that.
 */
export function createLiveAnswerer(
  live: LiveModel,
  table: ObservationTable,
  { answers, knownAt = createKnownAt(table) }: { readonly answers: Answers; readonly knownAt?: KnownAt },
): (rows: readonly number[]) => void {
  const columns = { count: 1 } as MetricColumns;
  for (const name of MODEL_COLUMNS) columns[name] = new Float64Array(1);
  const addresses = table.servers.map((server) => Buffer.from(server));
  const coming = createEventQueue<Coming>();
  const learnUntil = (nowMs: number) => {
    while (coming.nextMs()! <= nowMs) {
      const { forecast, target, observedMs, outputTokens } = coming.pop()!.event;
      live.observe(forecast, target, { observedMs, outputTokens });
    }
  };
  const answerRow = (row: number) => {
    const atMs = table.atMs[row]!;
    learnUntil(Number.isNaN(atMs) ? Number.NEGATIVE_INFINITY : atMs);
    for (const name of MODEL_COLUMNS) columns[name][0] = table[name][row]!;
    const podType = table.podTypes[table.podType[row]!]!;
    const forecast = live.forecast(columns, podType, addresses[table.server[row]!]!);
    for (const target of PREDICTION_TARGETS) {
      const observedMs = observedTimes(table, target)[row]!;
      if (!(observedMs > 0)) continue;
      const { medianMs } = forecast[target];
      const p90Ms = forecastP90Ms(forecast[target]);
      answers[target].push({ row, observedMs, predictedMs: medianMs, p90Ms });
      const knownMs = knownAt(row, target);
      if (knownMs < Number.POSITIVE_INFINITY)
        coming.push(knownMs, { forecast, target, observedMs, outputTokens: table.outputTokens[row] });
    }
  };
  return (rows) => rows.forEach(answerRow);
}
