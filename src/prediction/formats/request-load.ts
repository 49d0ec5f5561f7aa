/**
 * Reconstructs the load of a server at the start of each request from the other requests of a log. Only earlier events count:
 * starts before that instant, and first tokens and ends up to it. This takes O(n log n).
 */
import { type LoggedRequest, tpotOf } from './request-log.ts';

export interface Load {
  /** Requests that started and have no first token yet. */
  readonly waiting: number;
  /** Requests that decode: they have a first token and no end yet. */
  readonly running: number;
  /** Prompt tokens of waiting requests, plus prompt and estimated generated tokens of decoding requests. */
  readonly inflightTokens: number;
  /** Tokens of decoding requests divided by the capacity, not clipped to 1. Waiting requests hold no memory yet. */
  readonly kvCacheUsage: number;
}

/** Returns the load at the start of each request, in the order of the requests. */
export function reconstructLoads(requests: readonly LoggedRequest[], kvCapacityTokens: number): Load[] {
  const loads: Load[] = Array.from({ length: requests.length });
  const groups = Map.groupBy(requests.keys(), (i) => `${requests[i]!.run}\0${requests[i]!.server}`);
  for (const rows of groups.values()) replayServer(requests, rows, kvCapacityTokens, loads);
  return loads;
}

function replayServer(
  requests: readonly LoggedRequest[],
  rows: readonly number[],
  kvCapacityTokens: number,
  loads: Load[],
): void {
  const starts = sortBy(rows, (row) => requests[row]!.startMs);
  const firstTokens = sortBy(rows, (row) => requests[row]!.firstTokenMs);
  const ends = sortBy(rows, (row) => requests[row]!.endMs);
  const server = createServerLoad(requests[starts[0]!]!.startMs);
  let started = 0;
  let answered = 0;
  let ended = 0;
  for (const row of starts) {
    const nowMs = requests[row]!.startMs;
    // Requests that start at the same instant do not count for each other, because a log may not show which was first.
    while (started < rows.length && requests[starts[started]!]!.startMs < nowMs)
      server.start(requests[starts[started++]!]!);
    while (answered < rows.length && requests[firstTokens[answered]!]!.firstTokenMs <= nowMs)
      server.answer(requests[firstTokens[answered++]!]!);
    while (ended < rows.length && requests[ends[ended]!]!.endMs <= nowMs) server.end(requests[ends[ended++]!]!);
    loads[row] = server.describe(nowMs, kvCapacityTokens);
  }
}

function sortBy(rows: readonly number[], atMs: (row: number) => number): number[] {
  return rows.toSorted((a, b) => atMs(a) - atMs(b) || a - b);
}

/** The weight of the last ended request in the running mean of TPOT. */
const TPOT_WEIGHT = 0.1;

function createServerLoad(originMs: number) {
  let waiting = 0;
  let waitingTokens = 0;
  let running = 0;
  let runningTokens = 0;
  let firstTokenSumMs = 0;
  let tpotMs: number | undefined;

  /** Assumes that running requests generate tokens at the mean TPOT of requests that ended here: their own is not known yet. */
  function estimateGenerated(nowMs: number): number {
    if (tpotMs === undefined) return running;
    return running + Math.max(0, running * (nowMs - originMs) - firstTokenSumMs) / tpotMs;
  }

  return {
    start(request: LoggedRequest): void {
      waiting++;
      waitingTokens += request.inputTokens;
    },
    answer(request: LoggedRequest): void {
      waiting--;
      // Rounding errors of fractions must neither add up over a long log nor make the sum negative.
      waitingTokens = waiting === 0 ? 0 : Math.max(0, waitingTokens - request.inputTokens);
      running++;
      runningTokens += request.inputTokens;
      firstTokenSumMs += request.firstTokenMs - originMs;
    },
    end(request: LoggedRequest): void {
      running--;
      runningTokens = running === 0 ? 0 : Math.max(0, runningTokens - request.inputTokens);
      firstTokenSumMs = running === 0 ? 0 : firstTokenSumMs - (request.firstTokenMs - originMs);
      const ownMs = tpotOf(request);
      if (ownMs !== undefined) tpotMs = tpotMs === undefined ? ownMs : tpotMs + TPOT_WEIGHT * (ownMs - tpotMs);
    },
    describe(nowMs: number, kvCapacityTokens: number): Load {
      const heldTokens = runningTokens + estimateGenerated(nowMs);
      return {
        waiting,
        running,
        inflightTokens: waitingTokens + heldTokens,
        kvCacheUsage: heldTokens / kvCapacityTokens,
      };
    },
  };
}
