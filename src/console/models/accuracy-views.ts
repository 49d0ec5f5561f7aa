/** Declares the values that the pages of accuracy and errors show. */

export interface Scores {
  readonly rows: number;
  readonly mape: number;
  readonly bias: number;
  readonly p90Coverage: number;
}

export type TargetName = 'ttft' | 'tpot';

export interface AccuracyCharts {
  /** One for each pod type and target. */
  readonly readAccuracyOverTime: (query: AccuracyQuery) => Promise<readonly AccuracySeries[]>;
  /** One for each target of this server. */
  readonly readServerOverTime: (query: AccuracyQuery, server: string) => Promise<readonly AccuracySeries[]>;
  readonly listDriftAlarmHours: (name: string, fromMs: number) => Promise<readonly DriftAlarmHour[]>;
  readonly readErrorsByLoad: (query: ErrorsQuery) => Promise<ErrorsByLoad>;
  /** Pod types and servers whose errors are kept. */
  readonly listErrorParts: (query: Omit<ErrorsQuery, 'axis' | 'part'>) => Promise<readonly ErrorPart[]>;
}

export interface ErrorsQuery {
  readonly targetModel: string;
  readonly target: TargetName;
  readonly axis: ErrorAxis;
  /** All by default. For a server, only `predicted_ms` is stored. */
  readonly part?: ErrorPart | undefined;
  readonly fromMs: number;
}

export interface ErrorPart {
  readonly kind: 'pod type' | 'server';
  /** A pod type, empty for `aggregate`, or a server. */
  readonly part: string;
}

export type ErrorAxis =
  | 'predicted_ms'
  | 'num_request_waiting'
  | 'num_request_running'
  | 'kv_cache_usage'
  | 'prefix_cache_score'
  | 'input_token_length';

/** The number of reports with this load and this error. */
export interface ErrorsByLoad {
  /** The edges of the ranges of the load: range 0 is below the first edge, range 1 from the first edge to the second. */
  readonly edges: readonly number[];
  /** The edges of the ranges of observed divided by predicted time. */
  readonly ratioEdges: readonly number[];
  readonly counts: readonly { readonly range: number; readonly ratio: number; readonly times: number }[];
}

export interface AccuracyQuery {
  readonly targetModel: string;
  readonly fromMs: number;
  readonly stepMs: number;
}

export interface AccuracySeries {
  /** A pod type, empty for `aggregate`, or a server. */
  readonly part: string;
  readonly target: TargetName;
  /** Oldest first. A step in which several versions predicted has one point for each; a step without reports has no point. */
  readonly points: readonly AccuracyPoint[];
}

export interface AccuracyPoint {
  readonly startMs: number;
  /** 0 is the prior; −1 if the point covers several versions. */
  readonly version: number;
  readonly scores: Scores;
}

export interface DriftAlarmHour {
  readonly startMs: number;
  readonly target: TargetName;
  readonly cause: 'error' | 'coverage';
  readonly count: number;
}
