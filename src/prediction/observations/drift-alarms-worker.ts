/** Writes down when models were found not to fit, soon after, and forgets it after 30 days. */
import type { Store } from '../../database/store.ts';
import type { SteadyWorld } from '../../steady-clock.ts';
import type { Log } from '../../telemetry/log.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
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
}

export function createDriftAlarms({ store, world, log }: DriftAlarmDependencies): DriftAlarmRecorder {
  const waiting = new Map<string, DriftAlarms>();

  async function round(): Promise<void> {
    const alarms = [...waiting.values()];
    waiting.clear();
    if (alarms.length > 0) await store.writeAll(addAlarmsStatements(alarms));
    if (world.isClockTrusted()) await forgetDriftAlarms(store, world.nowMs());
  }

  return {
    ...createRoundWorker({ name: 'drift-alarms', restMs: WRITE_EVERY_MS, world, log, round }),
    record(targetModel, { target, cause }) {
      const key = `${target} ${cause} ${targetModel}`;
      const count = (waiting.get(key)?.count ?? 0) + 1;
      if (count > 1 || waiting.size < MAX_WAITING)
        waiting.set(key, { targetModel, target, cause, count, lastAtMs: world.nowMs() });
    },
  };
}
