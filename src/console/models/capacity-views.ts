/** Declares the values that the capacity page shows. */

/** How many requests the servers of a model can take while limits of latency hold. */

export interface CapacityView {
  /** The version of the model whose samples were simulated. */
  readonly version: number;
  readonly foundAtMs: number;
  readonly limits: CapacityLimits;
  /** The means that were asked about, or those of the samples. */
  readonly lengths: { readonly promptTokens: number; readonly outputTokens: number };
  /** Undefined when not even idle servers keep the limits. */
  readonly capacity: FoundCapacity | undefined;
  readonly servers: readonly CapacityServer[];
}

export interface CapacityLimits {
  /** Undefined for no limit. */
  readonly ttftMs: number | undefined;
  readonly tpotMs: number | undefined;
  /** The share of requests that must stay below, as 0.9. */
  readonly quantile: number;
}

export interface FoundCapacity {
  readonly requestsPerSecond: number;
  /** The mean of requests under way in the whole pool at that rate. */
  readonly concurrency: number;
  /** This limit breaks above that rate; with `observed load` the rate is at least that. */
  readonly limitedBy: 'ttft' | 'tpot' | 'observed load';
  /** Rates between which the limit breaks, where it stays about at the limit over many of them. */
  readonly plateau: { readonly fromRequestsPerSecond: number; readonly toRequestsPerSecond: number } | undefined;
  /** Rising by rate: latencies at the quantile of the limits. */
  readonly curve: readonly CapacityPoint[];
  /** Their parts of that rate. */
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
  /** More requests are under way than in any sample. */
  readonly isExtrapolated: boolean;
}

export interface CapacityServer {
  readonly name: string;
  /** Requests that it can have under way while the limits hold. */
  readonly maximum: number;
  /** Undefined when nothing shows what is under way now. */
  readonly underWay: number | undefined;
}
