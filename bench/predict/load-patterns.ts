import type { LoadConnection } from './grpc-load.ts';

export interface Measured {
  readonly callsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly failed: number;
  readonly elapsedSeconds: number;
  /** The share of an open loop in which the load generator itself stalled for over 1 ms at a time, which adds to latencies. */
  readonly pausedShare?: number;
}

const PAUSE_MS = 1;
const NAP = new Int32Array(new SharedArrayBuffer(4));
/** The tolerated delay of a send, and of noticing an answer. */
const NAP_MS = 0.05;

/** When calls arrive: at equal intervals, or at random ones (a Poisson process), as calls of many independent users do. */
export const ARRIVALS = ['steady', 'poisson'] as const;
export type Arrivals = (typeof ARRIVALS)[number];

export interface OpenLoop {
  readonly callsPerSecond: number;
  readonly durationMs: number;
  readonly arrivals: Arrivals;
}

/** Closed loop: each caller sends its next call when the last is answered, which gives the server's highest rate. */
export async function runClosedLoop(
  connections: readonly LoadConnection[],
  { inFlight, durationMs }: { readonly inFlight: number; readonly durationMs: number },
): Promise<Measured> {
  const latencies: number[] = [];
  const startedMs = performance.now();
  const endMs = startedMs + durationMs;
  let failed = 0;
  const ask = (connection: LoadConnection): Promise<void> =>
    new Promise((resolve) => {
      const next = (): void => {
        const sentMs = performance.now();
        if (sentMs >= endMs) {
          resolve();
          return;
        }
        connection.send((isAnswered) => {
          if (isAnswered) latencies.push(performance.now() - sentMs);
          else failed += 1;
          next();
        });
      };
      next();
    });
  await Promise.all(Array.from({ length: inFlight }, (_, index) => ask(connections[index % connections.length]!)));
  return summarize(latencies, failed, performance.now() - startedMs);
}

/**
 * Open loop: calls are sent on a schedule, whether or not those before were answered, and their latency counts from the scheduled
 * time, so that a stall of the server counts for all calls that were due meanwhile (no coordinated omission).
 */
export async function runOpenLoop(
  connections: readonly LoadConnection[],
  { callsPerSecond, durationMs, arrivals }: OpenLoop,
): Promise<Measured> {
  const latencies: number[] = [];
  const count = Math.floor((callsPerSecond * durationMs) / 1000);
  const dueAtMs = createSchedule(count, { meanMs: 1000 / callsPerSecond, arrivals });
  const startedMs = performance.now();
  let failed = 0;
  let sent = 0;
  let settled = 0;
  let pausedMs = 0;
  let awakeMs = startedMs;
  await new Promise<void>((resolve) => {
    const sendDue = (): void => {
      const nowMs = performance.now();
      if (nowMs - awakeMs > PAUSE_MS) pausedMs += nowMs - awakeMs;
      awakeMs = nowMs;
      for (; sent < count && startedMs + dueAtMs[sent]! <= performance.now(); sent++) {
        const dueMs = startedMs + dueAtMs[sent]!;
        connections[sent % connections.length]!.send((isAnswered) => {
          if (isAnswered) latencies.push(performance.now() - dueMs);
          else failed += 1;
          settled += 1;
          if (settled === count) resolve();
        });
      }
      if (sent === count) return;
      // A timer would be late by a millisecond. Spinning would not, but the machine takes cores away from a user of both.
      Atomics.wait(NAP, 0, 0, NAP_MS);
      setImmediate(sendDue);
    };
    sendDue();
  });
  const elapsedMs = performance.now() - startedMs;
  return { ...summarize(latencies, failed, elapsedMs), pausedShare: pausedMs / elapsedMs };
}

/** Returns when each call is due, in milliseconds after the start. */
function createSchedule(
  count: number,
  { meanMs, arrivals }: { readonly meanMs: number; readonly arrivals: Arrivals },
): Float64Array {
  const dueAtMs = new Float64Array(count);
  for (let call = 1; call < count; call++)
    dueAtMs[call] = dueAtMs[call - 1]! + (arrivals === 'steady' ? meanMs : -meanMs * Math.log(1 - Math.random()));
  return dueAtMs;
}

function summarize(latencies: number[], failed: number, elapsedMs: number): Measured {
  const sorted = Float64Array.from(latencies).sort();
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return {
    callsPerSecond: (latencies.length / elapsedMs) * 1000,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    maxMs: at(1),
    failed,
    elapsedSeconds: elapsedMs / 1000,
  };
}
