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
  /** When it happened, as ISO 8601. Without it, the service would take the time of arrival, and events can wait. */
  readonly at: string;
}

export type Event =
  | { readonly dispatched: Dispatched }
  | { readonly firstToken: FirstToken }
  | { readonly finished: Finished };

/** What became of events. */
export interface Reported {
  /** They are durable in the service. */
  readonly accepted: number;
  /** They could not be true or not be encoded, or the service had them already. */
  readonly refused: number;
  /** The service never confirmed them: it can never take them, too many waited, or the client was closed. */
  readonly dropped: number;
}

/** How reporting goes, while it goes. */
export interface Stats extends Reported {
  /** Events that the service has not confirmed yet. */
  readonly waiting: number;
  /** Why the last attempt to send events failed, or an event could not be encoded; undefined once an attempt succeeds. */
  readonly error: unknown;
}

export interface ReportOptions {
  /**
   * Called with the reason of an attempt to send events that failed, once a second at most, unless it is made again at once with
   * half of the events. What it throws is ignored.
   */
  readonly onError?: (error: unknown) => void;
}

/** What a router needs, over HTTP or gRPC. */
export interface Client {
  /** Rejects when nothing answers within `deadlineMs`. */
  predict(targetModel: string, inputs: readonly Input[], deadlineMs: number): Promise<Answer>;
  /** Never waits and never throws. */
  report(event: Event): void;
  stats(): Stats;
  /** Sends the events that wait, and says what became of all of them. */
  close(): Promise<Reported>;
}
