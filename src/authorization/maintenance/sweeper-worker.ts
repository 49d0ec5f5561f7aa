/** Sweeps expired rows, and makes the next signing key when it is due. Looks every minute, in one process at a time. */

import { createSweepContext } from '../../database/sweep.ts';
import type { IsClockTrusted } from '../../steady-clock.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createLeasedWorker } from '../../workers/leased-worker.ts';
import { createSweepFailures } from '../../workers/sweep-failures.ts';
import type { Worker } from '../../workers/worker.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { RETENTION_KINDS, sweepEnded } from './retention-store.ts';

const REST_MS = 60_000;
const NAME = 'authorization-sweeper';

interface SweeperDependencies extends ProtocolDependencies {
  readonly isClockTrusted: IsClockTrusted;
  readonly metrics: Metrics;
}

export function createSweeper(dependencies: SweeperDependencies): Worker {
  const { store, world, log, settings, signingKeys, isClockTrusted } = dependencies;
  const onFailure = createSweepFailures(dependencies, NAME, RETENTION_KINDS);
  const round = async (signal: AbortSignal): Promise<void> => {
    const sweep = { nowMs: world.nowMs(), auditDays: settings.auditDays };
    if (isClockTrusted()) await sweepEnded(store, sweep, createSweepContext(world, onFailure, signal));
    await signingKeys.ensureFresh();
  };
  return createLeasedWorker({ name: NAME, restMs: REST_MS, store, world, log, round });
}
