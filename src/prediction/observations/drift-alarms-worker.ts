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
import { addAlarmsStatements, type DriftAlarms, forgetDriftAlarms, hourOf } from './drift-alarm-store.ts';
import type { DriftAlarm } from './drift-watch.ts';

const WRITE_EVERY_MS = 5000;
/**
 * The most alarms that wait to be written: callers may report any target model, and an outage of the database may last hours.
 * Those of the oldest hour are dropped first.
 */
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
  /** The oldest first. */
  const waiting = new Map<string, DriftAlarms>();
  let isStopped = false;

  function hasRoom({ lastAtMs }: DriftAlarms): boolean {
    const [oldest] = waiting;
    if (oldest === undefined || waiting.size < MAX_WAITING) return true;
    return hourOf(oldest[1].lastAtMs) < hourOf(lastAtMs) && waiting.delete(oldest[0]);
  }

  function keep(key: string, alarms: DriftAlarms): void {
    const known = waiting.get(key);
    if (known === undefined && !hasRoom(alarms)) return;
    const lastAtMs = Math.max(known?.lastAtMs ?? alarms.lastAtMs, alarms.lastAtMs);
    waiting.set(key, { ...alarms, count: (known?.count ?? 0) + alarms.count, lastAtMs });
  }

  /** Alarms that cannot be written keep waiting, with those that come meanwhile. */
  async function save(): Promise<void> {
    const taken = [...waiting];
    if (taken.length === 0) return;
    waiting.clear();
    try {
      await store.writeAll(addAlarmsStatements(taken.map(([, alarms]) => alarms)));
    } catch (error) {
      const later = [...waiting];
      waiting.clear();
      for (const [key, alarms] of [...taken, ...later]) keep(key, alarms);
      throw error;
    }
  }

  async function saveLast(): Promise<void> {
    await save().catch((err: unknown) => log.error({ err }, 'Cannot write the last drift alarms'));
  }

  async function round(signal: AbortSignal): Promise<void> {
    await save();
    if (!world.isClockTrusted()) return;
    const sweeping = createSweepContext(world, onFailure, signal);
    const forgetAlarms = () => forgetDriftAlarms(store, world.nowMs(), sweeping);
    await sweepEach(sweeping, { alarms: forgetAlarms });
  }

  const worker = createRoundWorker({ name: NAME, restMs: WRITE_EVERY_MS, world, log, round });
  return {
    ...worker,
    record(targetModel, { target, cause }) {
      const lastAtMs = world.nowMs();
      // The key has the hour, so that alarms that wait for the database are not counted in the hour in which it comes back.
      const key = `${hourOf(lastAtMs)} ${target} ${cause} ${targetModel}`;
      keep(key, { targetModel, target, cause, count: 1, lastAtMs });
      // Listeners drain at the same time, so the last reports come after the stop. The store waits for this write before it closes.
      if (isStopped) void saveLast();
    },
    async stop() {
      await worker.stop();
      isStopped = true;
      await saveLast();
    },
  };
}
