/** Logs failures of sweeps, and counts them for alerts. */
import { Counter } from 'prom-client';
import type { SweepContext } from '../database/sweep.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';

const NAME = 'trivet_sweep_failures_total';

export interface SweepFailuresDependencies {
  readonly log: Log;
  readonly metrics: Metrics;
}

/** `kinds`: all kinds of this sweeper, so that each series exists before its first failure. */
export function createSweepFailures(
  { log, metrics }: SweepFailuresDependencies,
  sweeper: string,
  kinds: readonly string[],
): SweepContext['onFailure'] {
  const failures = findCounter(metrics) ?? createCounter(metrics);
  for (const kind of kinds) failures.inc({ sweeper, kind }, 0);
  return (kind, err) => {
    failures.inc({ sweeper, kind });
    log.error({ err, worker: sweeper, kind }, 'Cannot delete what is past its time; trying again in the next round');
  };
}

function createCounter(metrics: Metrics): Counter {
  return new Counter({
    name: NAME,
    help: 'Sweeps of rows past their time that failed, by sweeper and kind of row.',
    labelNames: ['sweeper', 'kind'],
    registers: [metrics],
  });
}

/** Returns the counter if another sweeper has registered it. */
function findCounter(metrics: Metrics): Counter | undefined {
  return metrics.getSingleMetric(NAME) as Counter | undefined;
}
