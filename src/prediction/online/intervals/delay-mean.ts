/**
 * Averages the feedback delay of events, which limits the steps of quantile levels and corrections. The steps of a server's
 * corrections are divided by a power of the mean (`server-quantiles.ts`), and those of a slot are capped by it (`conformal.ts`).
 * It is a mean so that all events of a period have the same step. More requests are missed when more are under way; if the delay
 * of each event decided its own step, a miss in a surge would count less than a covered request of a calm hour, and quantiles
 * would stay too low.
 */
export interface DelayMean {
  /** Adds the delay of an event, and returns the new mean. */
  observe(eventsMeanwhile: number): number;
}

/** The mean covers about this many events, more than a surge has. */
const MEMORY = 1000;

export function createDelayMean(): DelayMean {
  let mean = 0;
  let count = 0;
  return {
    observe(eventsMeanwhile) {
      count++;
      // The first events have short delays, since only short requests have ended by then. So while events are few, newer ones
      // count more.
      mean += (eventsMeanwhile - mean) * Math.max(2 / (count + 1), 1 / MEMORY);
      return mean;
    },
  };
}
