/**
 * Corrects the quantiles of a slot for each server (quantile tracking). There is one correction for each quantile level, moved
 * after each event of the server (Angelopoulos, Candès & Tibshirani 2023), so that in the long run the stated share stays below
 * at every server, and not only on average over all. A correction begins at 0, so a server without events has the quantiles of
 * its slot, and returns to 0 slowly. Corrections are in units of the slot's spread, as the quantiles are. Step 5 of
 * `prediction-intervals.ts`.
 */
import { QUANTILE_LEVELS } from './conformal.ts';
import { createDelayMean, type DelayMean } from './delay-mean.ts';

/**
 * The step of a correction after an event, times (missed ? 1 : 0) − (1 − level). That of the median is small: a prediction should
 * be steady.
 */
const STEPS = QUANTILE_LEVELS.map((level) => (level === 0.5 ? 0.01 : 0.15));
export const CORRECTION_DECAY = 0.999;
/** A bound, so that a server's quantiles return to normal soon after it has recovered. */
export const MAX_CORRECTION = 3;

/** Requests that are under way together are missed together, so steps shrink faster than the number of such requests grows. */
const DELAY_POWER = 1.5;
const NONE = new Float64Array(QUANTILE_LEVELS.length);

export interface ServerQuantiles {
  /** Returns what to add to the slot's quantiles, one for each of `QUANTILE_LEVELS`; zeros for -1, an unknown server. */
  correctionsOf(server: number): Float64Array;
  /**
   * `predicted` are the quantiles that were predicted for the server's request, one for each level. `eventsMeanwhile` is how many
   * events of the server were observed between the prediction and the end of the request: the more on average, the smaller the
   * step.
   */
  observe(server: number, residual: number, predicted: readonly number[], eventsMeanwhile?: number): void;
  /** How many events of this server were observed. */
  countOf(server: number): number;
  /** Counts events of this server that other processes observed. */
  countEvents(server: number, events: number): void;
  /** Must be called before this number is given to another server. */
  forget(server: number): void;
  saveServer(server: number): readonly number[] | undefined;
  restoreServer(server: number, saved: readonly number[]): void;
}

export function createServerQuantiles(): ServerQuantiles {
  const servers: (Float64Array | undefined)[] = [];
  const counts: number[] = [];
  const delayMeans: (DelayMean | undefined)[] = [];
  return {
    // An array look-up at -1 or beyond the end costs ten times as much as one inside, so the bounds are checked first.
    correctionsOf: (server) => (server >= 0 && server < servers.length ? (servers[server] ?? NONE) : NONE),
    countOf: (server) => (server >= 0 && server < counts.length ? (counts[server] ?? 0) : 0),
    countEvents(server, events) {
      counts[server] = (counts[server] ?? 0) + events;
    },
    observe(server, residual, predicted, eventsMeanwhile = 0) {
      if (server === -1) return;
      counts[server] = (counts[server] ?? 0) + 1;
      const corrections = servers[server] ?? new Float64Array(QUANTILE_LEVELS.length);
      servers[server] = corrections;
      delayMeans[server] ??= createDelayMean();
      const gain = 1 / (1 + delayMeans[server].observe(eventsMeanwhile)) ** DELAY_POWER;
      for (let p = 0; p < QUANTILE_LEVELS.length; p++) {
        const miss = residual > predicted[p]! ? 1 : 0;
        const moved = CORRECTION_DECAY * corrections[p]! + gain * STEPS[p]! * (miss - (1 - QUANTILE_LEVELS[p]!));
        corrections[p] = Math.max(-MAX_CORRECTION, Math.min(MAX_CORRECTION, moved));
      }
    },
    forget(server) {
      servers[server] = undefined;
      delayMeans[server] = undefined;
      counts[server] = 0;
    },
    saveServer: (server) => servers[server] && [...servers[server]],
    restoreServer(server, saved) {
      if (saved.length === QUANTILE_LEVELS.length) servers[server] = Float64Array.from(saved);
    },
  };
}
