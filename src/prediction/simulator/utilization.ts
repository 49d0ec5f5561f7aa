/** Averages the use of a server's processor and memory bandwidth over about the last second, idle time included. */

export interface Shares {
  readonly computeShare: number;
  readonly bandwidthShare: number;
}

export const IDLE: Shares = { computeShare: 0, bandwidthShare: 0 };

export interface Utilization {
  readonly atMs: number;
  /** The average at `atMs`. */
  readonly average: Shares;
  /** The use from `atMs` on. */
  readonly used: Shares;
}

/** The time constant of an exponential window, about the window of exporters of GPU metrics. */
const WINDOW_MS = 1000;

export function averageUntil({ atMs, average, used }: Utilization, nowMs: number): Shares {
  const kept = Math.exp(-(nowMs - atMs) / WINDOW_MS);
  const mix = (name: keyof Shares) => used[name] + kept * (average[name] - used[name]);
  return { computeShare: mix('computeShare'), bandwidthShare: mix('bandwidthShare') };
}

/** Returns the utilization with another use from now on. */
export function changeUse(utilization: Utilization, nowMs: number, used: Shares): Utilization {
  return { atMs: nowMs, average: averageUntil(utilization, nowMs), used };
}
