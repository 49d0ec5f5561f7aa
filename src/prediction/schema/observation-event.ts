/** Declares the events that report a served request: dispatched, first token, finished. */
import type { MetricColumn } from './input-fields.ts';

/** The chosen candidate at the time of its choice: a `PredictInput` without its `input_id`. */
export interface ObservedInput extends Readonly<Record<MetricColumn, number>> {
  readonly podType: string;
  readonly serverIp: string;
}

export interface DispatchedEvent {
  readonly kind: 'dispatched';
  readonly requestId: string;
  readonly targetModel: string;
  readonly input: ObservedInput;
  /** Milliseconds since the epoch: the time that the caller sent, or that of arrival. */
  readonly atMs: number;
  /** The history of the server as this process knew it at that time, in the order of `HISTORY_COLUMNS`. */
  readonly history?: ArrayLike<number> | undefined;
}

export interface FirstTokenEvent {
  readonly kind: 'first_token';
  readonly requestId: string;
  readonly ttftMs: number;
  readonly atMs: number;
}

export interface FinishedEvent {
  readonly kind: 'finished';
  readonly requestId: string;
  /** Undefined for an answer of one token. */
  readonly tpotMs: number | undefined;
  readonly outputTokens: number;
  readonly atMs: number;
}

/** A whole request in one event, with TTFT, TPOT or both. */
export interface WholeObservation {
  readonly kind: 'observation';
  /** May be empty. */
  readonly requestId: string;
  readonly targetModel: string;
  readonly input: ObservedInput;
  readonly atMs: number;
  /** The history of the server at the dispatch. */
  readonly history?: ArrayLike<number> | undefined;
  readonly ttftMs: number | undefined;
  readonly tpotMs: number | undefined;
  readonly outputTokens: number;
}

export type ObservationEvent = DispatchedEvent | FirstTokenEvent | FinishedEvent | WholeObservation;

export interface EventRefusal {
  /** The position in the array given to `report`. */
  readonly index: number;
  readonly reason: string;
}

export interface ReportResult {
  readonly accepted: number;
  /** All refused events, sorted by index. */
  readonly refusals: readonly EventRefusal[];
}

/** Takes events whose numbers were checked to be finite and in range. It still refuses events by its state, such as duplicates. */
export interface ObservationSink {
  /** Resolves once every accepted event is durable. Called with at most a few hundred events, in the order of arrival. */
  report(events: readonly ObservationEvent[]): Promise<ReportResult>;
}
