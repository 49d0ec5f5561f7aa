/** Repeats a task with a pause between the rounds, until it is stopped; a round that throws is logged. */
import { describeError, isFailure } from '../errors.ts';
import type { Log } from '../telemetry/log.ts';
import type { World } from '../world.ts';
import type { Worker } from './worker.ts';

export interface RoundWork {
  readonly name: string;
  readonly restMs: number;
  readonly world: World;
  readonly log: Log;
  /**
   * Ends soon after the signal. A round that throws is logged, and the next one follows as usual. Consecutive rounds that fail with
   * `unavailable`, as when the database is away, are logged once, and so is the recovery.
   */
  readonly round: (signal: AbortSignal) => Promise<unknown>;
}

export function createRoundWorker({ name, restMs, world, log, round }: RoundWork): Worker {
  const stopping = new AbortController();
  const { signal } = stopping;
  let running: Promise<void> | undefined;
  let isOut = false;

  function report(err: unknown): void {
    if (!isFailure(err) || err.code !== 'unavailable') {
      log.error({ err, worker: name }, 'A round of a background worker failed');
      return;
    }
    const reason = describeError(err);
    if (!isOut) log.warn({ reason, worker: name }, 'A round of a background worker failed; the next ones try again');
    isOut = true;
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        await round(signal);
        if (isOut) log.info({ worker: name }, 'A background worker goes on');
        isOut = false;
      } catch (err) {
        if (!signal.aborted) report(err);
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
