/** Declares the events that report a served request: dispatched, first token, finished. */
import type { MetricColumn } from './input-fields.ts';

/** The candidate as it was when it was chosen: a `PredictInput` without its `input_id`. */
export interface ObservedInput extends Readonly<Record<MetricColumn, number>> {
  readonly podType: string;
  readonly serverIp: string;
}

export interface DispatchedEvent {
  readonly kind: 'dispatched';
  readonly requestId: string;
  readonly targetModel: string;
  readonly input: ObservedInput;
  /** Milliseconds since the epoch: as the caller says, else when it arrived here. */
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
  /** Undefined when there was one token only. */
  readonly tpotMs: number | undefined;
  readonly outputTokens: number;
  readonly atMs: number;
}

/** A whole request in one event; at least one of the two times is there. */
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
  /** Position in what was given to `report`. */
  readonly index: number;
  readonly reason: string;
}

export interface ReportResult {
  readonly accepted: number;
  /** Every refused event, rising by index. */
  readonly refusals: readonly EventRefusal[];
}

/** Where events go. Their numbers are finite and in range already; only what needs memory is left to refuse. */
export interface ObservationSink {
  /** Resolves once every accepted event is durable. Called with at most a few hundred events; order is order of arrival. */
  report(events: readonly ObservationEvent[]): Promise<ReportResult>;
}
