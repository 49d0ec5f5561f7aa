/**
 * Averages the feedback delay of events, which limits the steps of quantile levels and corrections. It divides those of a
 * server's corrections (`server-quantiles.ts`) and caps those of a slot (`conformal.ts`). All events of a time have one size of
 * step: when more requests are under way, more of them are missed. If the delay of each event decided its own step, a miss in a
 * surge would count less than a covered request of a calm hour, and quantiles would stay too low.
 */
export interface DelayMean {
  /** Adds the delay of an event, and returns the new mean. */
  observe(eventsMeanwhile: number): number;
}

/** The mean is of about this many events, which is longer than a surge. */
const MEMORY = 1000;

export function createDelayMean(): DelayMean {
  let mean = 0;
  let count = 0;
  return {
    observe(eventsMeanwhile) {
      count++;
      // The first events have short delays, since only what is short has ended by then. So while events are few, newer ones count more.
      mean += (eventsMeanwhile - mean) * Math.max(2 / (count + 1), 1 / MEMORY);
      return mean;
    },
  };
}
