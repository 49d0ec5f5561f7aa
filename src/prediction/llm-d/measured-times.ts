/** Tracks which target models have clients that do not stream, and so get end-to-end times. */
import type { Store } from '../../database/store.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Worker } from '../../workers/worker.ts';
import { listEndToEndModels, MEASURES_TOPIC, type Measures, nameEndToEnd } from './training-row-store.ts';

export interface MeasuredTimes extends Worker {
  /** Returns the target model that answers for this one. */
  answeringModel(targetModel: string): string;
  /** Records what the times of a model measure, as a batch has just shown. */
  record(targetModel: string, measures: Measures): void;
  /** Reads from the store what is known; call before the first request. */
  load(): Promise<void>;
}

/** A limit, because callers may send any name. */
const MAX_MODELS = 10_000;

export function createMeasuredTimes({ store, log }: { readonly store: Store; readonly log: Log }): MeasuredTimes {
  let endToEnd = new Set<string>();
  let stopWatching: (() => void) | undefined;

  async function load(): Promise<void> {
    endToEnd = new Set(await listEndToEndModels(store, MAX_MODELS));
  }

  function reload(): void {
    load().catch((error: unknown) => log.error({ err: error }, 'Cannot read which models have end-to-end times'));
  }

  return {
    name: 'llm-d-measured-times',
    load,
    answeringModel: (targetModel) => (endToEnd.has(targetModel) ? nameEndToEnd(targetModel) : targetModel),
    record(targetModel, measures) {
      if (measures === 'end-to-end') endToEnd.add(targetModel);
      else if (measures === 'first-token') endToEnd.delete(targetModel);
    },
    start() {
      stopWatching ??= store.watch(MEASURES_TOPIC, reload);
    },
    async stop() {
      stopWatching?.();
    },
  };
}
