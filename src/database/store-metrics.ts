/** Measures how long writes take until they are durable, and counts calls that wait for the store. */
import { Gauge, Histogram } from 'prom-client';
import { type FailureCode, isFailure } from '../errors.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Engine } from './engine.ts';

export interface StoreMetrics {
  /** Runs a write and records how long its caller waited, and whether it was stored, refused by a rule, or failed. */
  readonly time: <Result>(work: () => Promise<Result>) => Promise<Result>;
}

/** Reads are not timed: on SQLite that would cost as much as some of them take. */
export function createStoreMetrics(metrics: Metrics, engine: Engine): StoreMetrics {
  const seconds = new Histogram({
    name: 'trivet_database_write_duration_seconds',
    help: 'From the call of a write to its durable end, with the wait for others before it.',
    labelNames: ['outcome'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
    registers: [metrics],
  });
  new Gauge({
    name: 'trivet_database_waiting',
    help: 'Writes (SQLite) or calls (PostgreSQL) that wait for their turn; beyond a limit they are refused.',
    registers: [metrics],
    collect() {
      this.set(engine.countWaiting());
    },
  });
  return {
    time: async (work) => {
      const startedAt = performance.now();
      let outcome = 'stored';
      try {
        return await work();
      } catch (error) {
        outcome = isRefusal(error) ? 'refused' : 'failed';
        throw error;
      } finally {
        seconds.observe({ outcome }, (performance.now() - startedAt) / 1000);
      }
    },
  };
}

/** The database or the connection is at fault. All other failures are refusals of the write: a duplicate key, a rule. */
const FAULTS: ReadonlySet<FailureCode> = new Set(['unavailable', 'deadline', 'internal']);

function isRefusal(error: unknown): boolean {
  return isFailure(error) && !FAULTS.has(error.code);
}
