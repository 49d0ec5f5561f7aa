import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { createLog } from '../../telemetry/log.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { createDriftAlarms } from './drift-alarms-worker.ts';
import { createRequestSweeper } from './request-sweeper.ts';

const ROUNDS = 5;

/** A world in which a worker rests for one turn of the event loop, until it has run all rounds. */
function createRounds() {
  const { promise: done, resolve } = Promise.withResolvers<void>();
  let count = 0;
  const sleep = async () => {
    if (++count === ROUNDS) resolve();
    await nextTurn();
  };
  return { world: { ...createStillWorld(), sleep, isClockTrusted: () => true }, done };
}

for (const [name, create] of [
  ['request-sweeper', createRequestSweeper],
  ['drift-alarms', createDriftAlarms],
] as const)
  forEachEngine(`while the database is away, ${name} logs one warning and counts no failed sweep`, async (store) => {
    await store[Symbol.asyncDispose]();
    const lines: string[] = [];
    const log = createLog('info', { write: (line: string) => void lines.push(line) });
    const metrics = createMetrics();
    const { world, done } = createRounds();
    const worker = create({ store, world, log, metrics });
    worker.start();
    await done;
    await worker.stop();
    const logged = lines.map((line) => JSON.parse(line) as { level: string; worker: string });
    assert.deepEqual(
      logged.map(({ level, worker: of }) => ({ level, of })),
      [{ level: 'warn', of: name }],
    );
    const counts = await metrics.getSingleMetricAsString('trivet_sweep_failures_total');
    assert.match(counts, /\} 0$/m);
    assert.doesNotMatch(counts, /\} [1-9]/);
  });
