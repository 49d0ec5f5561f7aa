/** Twelve hours of live accuracy in a store, as if gateways had reported, for tests of pages that show it. */
import { Registry } from 'prom-client';
import type { Store } from '../../../src/database/store.ts';
import { createAccuracyWorker } from '../../../src/prediction/live-accuracy/accuracy-worker.ts';
import { addAlarmsStatements } from '../../../src/prediction/observations/drift-alarm-store.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createStillWorld } from '../basics/still-world.ts';
import { ANSWERED_ROW } from './answered-row.ts';

const MINUTE_MS = 60_000;
const PERIODS = 144;

export interface TestAccuracy {
  readonly name: string;
  readonly nowMs: number;
}

/**
 * TTFT of the pod types aggregate and prefill, and TPOT of aggregate, on server 10.0.0.1: 10 % too long by version 1 until six
 * hours ago, 20 % too long and above its p90 by version 2 since, with a drift alarm an hour ago.
 */
export async function recordTestAccuracy(store: Store, { name, nowMs }: TestAccuracy): Promise<void> {
  const worker = createAccuracyWorker({
    store,
    world: createStillWorld(),
    log: createLog('silent'),
    metrics: new Registry(),
    isClockTrusted: () => true,
  });
  for (let period = 1; period < PERIODS; period++) {
    const isNew = period < PERIODS / 2;
    const row = {
      ...ANSWERED_ROW,
      targetModel: name,
      nowMs: nowMs - period * 5 * MINUTE_MS,
      version: isNew ? 2 : 1,
      ...(isNew ? { predictedMs: 80, p90Ms: 90 } : {}),
    };
    worker.observe(row);
    worker.observe({ ...row, podType: 'prefill' });
    worker.observe({ ...row, target: 'tpot' });
  }
  await worker.save();
  const alarm = { targetModel: name, target: 'ttft', cause: 'coverage', count: 2 } as const;
  await store.writeAll(addAlarmsStatements([{ ...alarm, lastAtMs: nowMs - 60 * MINUTE_MS }]));
}
