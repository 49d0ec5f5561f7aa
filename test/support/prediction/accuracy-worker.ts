import { Registry } from 'prom-client';
import type { Store } from '../../../src/database/store.ts';
import { type AccuracyWorker, createAccuracyWorker } from '../../../src/prediction/live-accuracy/accuracy-worker.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createStillWorld } from '../basics/still-world.ts';

/** The live accuracy recorder of one process, with a fixed clock that counts as trusted. */
export function createTestAccuracyWorker(store: Store): AccuracyWorker {
  return createAccuracyWorker({
    store,
    world: createStillWorld(),
    log: createLog('silent'),
    metrics: new Registry(),
    isClockTrusted: () => true,
  });
}
