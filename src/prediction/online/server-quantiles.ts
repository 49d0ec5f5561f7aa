/**
 * How much further each server's times reach than those of its slot: one correction a promised quantile, moved after
 * each event of the server by quantile tracking (Angelopoulos, Candès & Tibshirani 2023), so that in the long run the
 * stated share stays below at every server, and not only on average over them. It begins at 0 and returns to it slowly:
 * a server that has said little has the quantiles of its slot. In units of the slot's spread, as they are.
 */
import { PROMISES } from './conformal.ts';

/** How far a miss moves a correction; the median's is a prediction, which should not tremble. */
const STEPS = PROMISES.map((promised) => (promised === 0.5 ? 0.01 : 0.15));
const MEMORY = 0.999;
/** A server that was shaken by a change comes back in finite time. */
const MAX_CORRECTION = 3;

const NONE = new Float64Array(PROMISES.length);

export interface ServerQuantiles {
  /** What to add to the slot's quantiles, one a promise of `PROMISES`; zeros for -1, an unknown server. */
  correctionsOf(server: number): Float64Array;
  /** `promised` are the quantiles that the server's request was told, one a promise. */
  observe(server: number, residual: number, promised: readonly number[]): void;
  /** This number means another server from now on. */
  forget(server: number): void;
  saveServer(server: number): readonly number[] | undefined;
  restoreServer(server: number, saved: readonly number[]): void;
}

export function createServerQuantiles(): ServerQuantiles {
  const servers: (Float64Array | undefined)[] = [];
  return {
    // Not by `servers[server]` alone: to look for -1, or beyond the end, costs ten times what a look inside does.
    correctionsOf: (server) => (server >= 0 && server < servers.length ? (servers[server] ?? NONE) : NONE),
    observe(server, residual, promised) {
      if (server === -1) return;
      const corrections = servers[server] ?? new Float64Array(PROMISES.length);
      servers[server] = corrections;
      for (let p = 0; p < PROMISES.length; p++) {
        const miss = residual > promised[p]! ? 1 : 0;
        const moved = MEMORY * corrections[p]! + STEPS[p]! * (miss - (1 - PROMISES[p]!));
        corrections[p] = Math.max(-MAX_CORRECTION, Math.min(MAX_CORRECTION, moved));
      }
    },
    forget(server) {
      servers[server] = undefined;
    },
    saveServer: (server) => servers[server] && [...servers[server]],
    restoreServer(server, saved) {
      if (saved.length === PROMISES.length) servers[server] = Float64Array.from(saved);
    },
  };
}
