/**
 * Writes drift alarms to the store, and deletes old ones. An alarm is an event and has no end: notices show those of the last
 * hour (`drift-notices.ts`).
 */
import type { Store } from '../../database/store.ts';
import { createSweepContext, sweepEach } from '../../database/sweep.ts';
import type { SteadyWorld } from '../../steady-clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import { createSweepFailures } from '../../workers/sweep-failures.ts';
import type { Worker } from '../../workers/worker.ts';
import { addAlarmsStatements, type DriftAlarms, forgetDriftAlarms } from './drift-alarm-store.ts';
import type { DriftAlarm } from './drift-watch.ts';

const WRITE_EVERY_MS = 5000;
/** Callers may report any name of a target model. */
const MAX_WAITING = 1000;

export interface DriftAlarmRecorder extends Worker {
  record(targetModel: string, alarm: DriftAlarm): void;
}

export interface DriftAlarmDependencies {
  readonly store: Store;
  readonly world: SteadyWorld;
  readonly log: Log;
  readonly metrics: Metrics;
}

const NAME = 'drift-alarms';

export function createDriftAlarms(dependencies: DriftAlarmDependencies): DriftAlarmRecorder {
  const { store, world, log } = dependencies;
  const onFailure = createSweepFailures(dependencies, NAME, ['alarms']);
  const waiting = new Map<string, DriftAlarms>();

  async function round(signal: AbortSignal): Promise<void> {
    const alarms = [...waiting.values()];
    waiting.clear();
    if (alarms.length > 0) await store.writeAll(addAlarmsStatements(alarms));
    if (!world.isClockTrusted()) return;
    const sweeping = createSweepContext(world, onFailure, signal);
    const forgetAlarms = () => forgetDriftAlarms(store, world.nowMs(), sweeping);
    await sweepEach(sweeping, { alarms: forgetAlarms });
  }

  return {
    ...createRoundWorker({ name: NAME, restMs: WRITE_EVERY_MS, world, log, round }),
    record(targetModel, { target, cause }) {
      const key = `${target} ${cause} ${targetModel}`;
      const count = (waiting.get(key)?.count ?? 0) + 1;
      if (count > 1 || waiting.size < MAX_WAITING)
        waiting.set(key, { targetModel, target, cause, count, lastAtMs: world.nowMs() });
    },
  };
}
