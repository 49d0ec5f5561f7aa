/** A worker that repeats one task with a rest between the rounds, until it is stopped. */
import type { Log } from '../telemetry/log.ts';
import type { World } from '../world.ts';
import type { Worker } from './worker.ts';

export interface RoundWork {
  readonly name: string;
  readonly restMs: number;
  readonly world: World;
  readonly log: Log;
  /** Ends soon after the signal. A round that throws is logged, and the next one follows as usual. */
  readonly round: (signal: AbortSignal) => Promise<unknown>;
}

export function createRoundWorker({ name, restMs, world, log, round }: RoundWork): Worker {
  const stopping = new AbortController();
  const { signal } = stopping;
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        await round(signal);
      } catch (err) {
        if (!signal.aborted) log.error({ err, worker: name }, 'A round of a background worker failed');
      }
      await world.sleep(restMs, signal).catch(() => {});
    }
  }

  return {
    name,
    start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
