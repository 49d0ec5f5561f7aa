/** Defines one Predict call as columns of numbers, which decoders fill and features are computed from. */
import {
  type CamelCase,
  fillMetrics,
  METRICS,
  type MetricColumn,
  type MetricName,
  toCamelCase,
} from './input-fields.ts';

/**
 * One Predict call as columns. The decoders of gRPC and JSON fill them, and the feature computation reads them. The arrays are
 * reused from call to call: only the first `count` entries are valid, and only until the handler returns.
 */
export interface PredictColumns extends Record<MetricColumn, Float64Array> {
  count: number;
  capacity: number;
  inputId: Int32Array;
  /** Index into `podTypes`. */
  podType: Uint16Array;
  /** The distinct pod types of this call, in order of appearance. */
  podTypes: string[];
  /** The columns of `METRIC_COLUMNS`, in that order. */
  metrics: readonly Float64Array[];
  /** The history of the server as known when the request was sent; NaN if not known. See `HISTORY_COLUMNS`. */
  sinceFirstTokenMs: Float64Array;
  firstTokenGapMs: Float64Array;
  waitingTokens: Float64Array;
  oldestWaitingMs: Float64Array;
  expectedWaitMs: Float64Array;
  sinceDispatchMs: Float64Array;
  sinceEarlierDispatchMs: Float64Array;
  /** The UTF-8 of `server_ip` is `source[serverIpStart[i] … + serverIpLength[i])`; it is never decoded to a string on the hot path. */
  source: Uint8Array;
  serverIpStart: Int32Array;
  serverIpLength: Int32Array;
}

/** The numbers of an input, in the order of their field numbers. */
export const METRIC_COLUMNS: readonly MetricColumn[] = METRICS.map(({ column }) => column);

/** Inputs that are computed from the reports of a server, under their names in tables and model files. Callers do not send them. */
export const HISTORY_FIELDS = [
  'since_first_token_ms',
  'first_token_gap_ms',
  'waiting_tokens',
  'oldest_waiting_ms',
  'expected_wait_ms',
  'since_dispatch_ms',
  'since_earlier_dispatch_ms',
] as const;

type HistoryColumn = CamelCase<(typeof HISTORY_FIELDS)[number]>;

/** `HISTORY_FIELDS` under their names in code. NaN means missing. */
export const HISTORY_COLUMNS = HISTORY_FIELDS.map((name) => toCamelCase(name) as HistoryColumn);

/** All numeric columns that a model computes its features from. */
export const MODEL_COLUMNS = [...METRIC_COLUMNS, ...HISTORY_COLUMNS] as const;

/** `METRIC_COLUMNS` under their names in the proto file. */
export const METRIC_FIELDS: readonly MetricName[] = METRICS.map(({ name }) => name);

/** Predicted times in milliseconds, by row. Entries after the last row mean nothing. */
export interface PredictedColumns {
  ttftMs: Float64Array;
  tpotMs: Float64Array;
}

/** Answers a whole call synchronously. The caller must leave out rows with impossible numbers before. */
export interface Predictor {
  /** Fills the first `columns.count` entries of `predicted`; returns the version of the model that answered. */
  predict(targetModel: string, columns: PredictColumns, predicted: PredictedColumns): string;
  hasModel(targetModel: string): boolean;
}

/** The mean of the predicted distribution, or one of its quantiles. */
export type AnswerStatistic = 'mean' | 'p10' | 'p50' | 'p90' | 'p95' | 'p99';

/** Answers batches of any size with the statistics that the caller chooses. */
export interface BatchPredictor {
  /**
   * Runs synchronously, in time proportional to the rows, so a server splits a large batch and lets other calls run between the
   * parts. `columns` may have more rows than a Predict call may.
   */
  predictBatch(targetModel: string, columns: PredictColumns, statistics: readonly AnswerStatistic[]): BatchPrediction;
}

export interface BatchPrediction {
  /** The version of the model that answered. */
  readonly modelVersion: string;
  /** One entry for each requested statistic, in that order; each is as long as the batch. */
  readonly predicted: readonly PredictedColumns[];
}

export function createPredictColumns(capacity: number): PredictColumns {
  const metrics = fillMetrics(() => new Float64Array(capacity));
  return {
    count: 0,
    capacity,
    inputId: new Int32Array(capacity),
    podType: new Uint16Array(capacity),
    podTypes: [],
    ...metrics,
    metrics: METRIC_COLUMNS.map((name) => metrics[name]),
    sinceFirstTokenMs: new Float64Array(capacity).fill(Number.NaN),
    firstTokenGapMs: new Float64Array(capacity).fill(Number.NaN),
    waitingTokens: new Float64Array(capacity).fill(Number.NaN),
    oldestWaitingMs: new Float64Array(capacity).fill(Number.NaN),
    expectedWaitMs: new Float64Array(capacity).fill(Number.NaN),
    sinceDispatchMs: new Float64Array(capacity).fill(Number.NaN),
    sinceEarlierDispatchMs: new Float64Array(capacity).fill(Number.NaN),
    source: new Uint8Array(0),
    serverIpStart: new Int32Array(capacity),
    serverIpLength: new Int32Array(capacity),
  };
}

/** Returns the rows from `start` on and before `end` without a copy: the result shares its arrays with `columns`. */
export function viewColumns(columns: PredictColumns, start: number, end: number): PredictColumns {
  const view = { ...columns, count: end - start, capacity: end - start };
  view.inputId = columns.inputId.subarray(start, end);
  view.podType = columns.podType.subarray(start, end);
  view.serverIpStart = columns.serverIpStart.subarray(start, end);
  view.serverIpLength = columns.serverIpLength.subarray(start, end);
  for (const name of MODEL_COLUMNS) view[name] = columns[name].subarray(start, end);
  view.metrics = METRIC_COLUMNS.map((name) => view[name]);
  return view;
}
