/**
 * Whether what seems to wait does wait: a request whose first token is reported to another process, or never, looks as if
 * it waited. Waits of queues are believed as long as the times that they were above the prediction for prove them right.
 */

/** How much the last request counts in the share of requests that took as long as the queue said. */
const WEIGHT = 0.05;
const LEAST_SHARE = 0.5;

/** What was said of a request. */
export interface QueueClaim {
  readonly leastMs: number;
  /** What is predicted without it. */
  readonly predictedMs: number;
}

export interface QueueTrust {
  readonly isBelieved: boolean;
  observe(claim: QueueClaim, observedMs: number): void;
}

export function createQueueTrust(): QueueTrust {
  let share = 1;
  return {
    get isBelieved() {
      return share > LEAST_SHARE;
    },
    observe({ leastMs, predictedMs }, observedMs) {
      if (leastMs > predictedMs) share += WEIGHT * (Number(observedMs >= leastMs) - share);
    },
  };
}
