/** Declares the messages of prediction.v1 and observation.v1 in their JSON form, which proto-loader uses too. */

export interface Input {
  readonly inputId: number;
  readonly serverIp: string;
  readonly podType?: string;
  readonly inputTokenLength: number;
  readonly prefixCacheScore?: number;
  readonly numRequestWaiting?: number;
  readonly numRequestRunning?: number;
  readonly kvCacheUsage?: number;
  readonly inflightTokens?: number;
}

export interface Output {
  readonly inputId: number;
  readonly predictedTtftMillis: number;
  readonly predictedTpotMillis: number;
}

export interface Answer {
  readonly outputs: readonly Output[];
  readonly metadata: { readonly modelVersion: string; readonly omittedInputs: number };
}

interface Dispatched extends Happened {
  readonly targetModel: string;
  readonly input: Input;
}

interface FirstToken extends Happened {
  readonly ttftMillis: number;
}

interface Finished extends Happened {
  readonly tpotMillis?: number;
  readonly outputTokens: number;
}

interface Happened {
  readonly requestId: string;
  /** When it happened, in ISO 8601. Without it, the service takes the time of arrival, which is later because events wait. */
  readonly at: string;
}

export type Event =
  | { readonly dispatched: Dispatched }
  | { readonly firstToken: FirstToken }
  | { readonly finished: Finished };

/** What became of events. */
export interface Reported {
  /** These events are durable in the service. */
  readonly accepted: number;
  /** These were impossible or could not be encoded, or the service had them already. */
  readonly refused: number;
  /** The service never confirmed these: it can never take them, too many waited, or the client was closed. */
  readonly dropped: number;
}

/** The state of reporting at a time. */
export interface Stats extends Reported {
  /** Events that the service has not confirmed yet. */
  readonly waiting: number;
  /** Why the last attempt to send events failed, or an event could not be encoded; undefined once an attempt succeeds. */
  readonly error: unknown;
}

export interface ReportOptions {
  /**
   * Called with the error of a failed attempt to send events, at most once a second. It is not called when half of the events are
   * sent again at once. Errors that it throws are ignored.
   */
  readonly onError?: (error: unknown) => void;
}

/** What a router needs of a client, over HTTP or gRPC. */
export interface Client {
  /** Rejects without an answer within `deadlineMs`. */
  predict(targetModel: string, inputs: readonly Input[], deadlineMs: number): Promise<Answer>;
  /** Never waits and never throws. */
  report(event: Event): void;
  stats(): Stats;
  /** Sends waiting events, and resolves with what became of all events. */
  close(): Promise<Reported>;
}
