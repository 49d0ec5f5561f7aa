/** Declares the values that the capacity page shows. */

/** The rate of requests that the servers of a model can take within limits of latency. */

export interface CapacityView {
  /** The version of the model whose samples were simulated. */
  readonly version: number;
  readonly foundAtMs: number;
  readonly limits: CapacityLimits;
  /** The means of the form, or else those of the samples. */
  readonly lengths: { readonly promptTokens: number; readonly outputTokens: number };
  /** Undefined when even idle servers exceed the limits. */
  readonly capacity: FoundCapacity | undefined;
  readonly servers: readonly CapacityServer[];
}

export interface CapacityLimits {
  /** Undefined for no limit. */
  readonly ttftMs: number | undefined;
  readonly tpotMs: number | undefined;
  /** The share of requests that must stay within the limits, such as 0.9. */
  readonly quantile: number;
}

export interface FoundCapacity {
  readonly requestsPerSecond: number;
  /** The mean number of requests under way in the whole pool at that rate. */
  readonly concurrency: number;
  /** The limit that is exceeded above that rate. With `observed load`, the samples show no higher load, so the rate is a lower bound. */
  readonly limitedBy: 'ttft' | 'tpot' | 'observed load';
  /** The rates between which the limit is exceeded, where the latency stays close to the limit over a wide range of rates. */
  readonly plateau: { readonly fromRequestsPerSecond: number; readonly toRequestsPerSecond: number } | undefined;
  /** Latencies at the quantile of the limits, in rising order of the rate. */
  readonly curve: readonly CapacityPoint[];
  /** The share of that rate that each server takes. */
  readonly servers: readonly {
    readonly name: string;
    readonly requestsPerSecond: number;
    readonly concurrency: number;
  }[];
}

export interface CapacityPoint {
  readonly requestsPerSecond: number;
  readonly ttftMs: number;
  /** Undefined for answers of one token. */
  readonly tpotMs: number | undefined;
  /** Whether more requests are under way than in any sample. */
  readonly isExtrapolated: boolean;
}

export interface CapacityServer {
  readonly name: string;
  /** The most requests that the server can have under way within the limits. */
  readonly maximum: number;
  /** Undefined when neither metrics nor reports show the current load. */
  readonly underWay: number | undefined;
}
