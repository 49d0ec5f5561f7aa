/**
 * Answers each call from the promoted version of its target model, and swaps versions between two calls. No call waits for a
 * swap. Large calls of llm-d, which are answered in slices, start again after a swap (`llm-d/answer-rows.ts`).
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { realWorld, type World } from '../../world.ts';
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import {
  type BatchPredictor,
  type PredictColumns,
  type PredictedColumns,
  type Predictor,
  viewColumns,
} from '../schema/columns.ts';
import { createLiveModel, type LiveModel, type StatisticColumns } from './live-model.ts';
import { createUntrainedModels } from './names/untrained-models.ts';

export interface SwappablePredictor extends Predictor, BatchPredictor {
  /**
   * Serves this model from the next call on; undefined goes back to the prior. Weights, quantiles and histories stay; residuals
   * of servers are computed again from the newest rows.
   */
  swap(targetModel: string, model: LatencyModel | undefined): void;
  /** Swaps in steps, between which calls are answered. Only one swap of a target model may run at a time. */
  swapBetweenCalls(targetModel: string, model: LatencyModel): Promise<void>;
  /** The live model of a target model; without a trained model, it starts from the prior. */
  live(targetModel: string): LiveModel;
  /** The name under which that live model is saved: SHARED_NAME for the one that target models share. */
  liveNameOf(targetModel: string): string;
  /** Calls the listener with each name whose live model is dropped: the name was not used for long, and its place is needed. */
  onForget(listener: (targetModel: string) => void): void;
  /** The names that are served, with their version ids. */
  list(): { readonly targetModel: string; readonly id: string }[];
}

/** No report can name it, since the name of a target model is never empty. */
export const SHARED_NAME = '';
/** The most rows that are predicted at once, since evaluators keep room for the largest call. */
const ROWS_AT_ONCE = 4096;

export function createPredictor(world: Pick<World, 'nowMs' | 'monotonicMs'> = realWorld): SwappablePredictor {
  const prior = createPriorModel();
  const trained = new Map<string, LiveModel>();
  const untrained = createUntrainedModels(() => createLiveModel(prior, world), world);
  const shared = createLiveModel(prior, world);
  const find = (targetModel: string) => trained.get(targetModel) ?? untrained.find(targetModel);

  /** The live model of a name that is trained from now on. */
  function openTrained(targetModel: string): LiveModel {
    const known = find(targetModel);
    if (known !== undefined) return known;
    const live = createLiveModel(prior, world);
    untrained.set(targetModel, live);
    return live;
  }

  function setTrained(targetModel: string, live: LiveModel): void {
    untrained.delete(targetModel);
    trained.set(targetModel, live);
  }

  return {
    async swapBetweenCalls(targetModel, model) {
      const live = openTrained(targetModel);
      for (const _ of live.prepareSwap(model)) await yieldToCalls();
      setTrained(targetModel, live);
    },
    swap(targetModel, model) {
      if (model !== undefined) {
        const live = openTrained(targetModel);
        live.replaceModel(model);
        return setTrained(targetModel, live);
      }
      const live = trained.get(targetModel);
      if (live === undefined) return;
      live.replaceModel(prior);
      trained.delete(targetModel);
      untrained.set(targetModel, live);
    },
    liveNameOf: (targetModel) => (trained.has(targetModel) || untrained.has(targetModel) ? targetModel : SHARED_NAME),
    onForget: (listener) => untrained.onForget(listener),
    live(targetModel) {
      if (targetModel === SHARED_NAME) return shared;
      return trained.get(targetModel) ?? untrained.ensure(targetModel) ?? shared;
    },
    hasModel: (targetModel) => trained.has(targetModel),
    list: () => [...trained].map(([targetModel, live]) => ({ targetModel, id: live.model.id })),
    predict(targetModel, columns, predicted) {
      const live = find(targetModel) ?? shared;
      live.predict(columns, predicted);
      return live.model.id;
    },
    predictBatch(targetModel, columns, statistics) {
      const live = find(targetModel) ?? shared;
      const outputs = statistics.map((statistic) => ({ statistic, predicted: createPredicted(columns.count) }));
      for (let start = 0; start < columns.count; start += ROWS_AT_ONCE)
        predictPart(live, { columns, start, end: Math.min(columns.count, start + ROWS_AT_ONCE) }, outputs);
      return { modelVersion: live.model.id, predicted: outputs.map(({ predicted }) => predicted) };
    },
  };
}

function createPredicted(rows: number): PredictedColumns {
  return { ttftMs: new Float64Array(rows), tpotMs: new Float64Array(rows) };
}

interface BatchPart {
  readonly columns: PredictColumns;
  readonly start: number;
  readonly end: number;
}

function predictPart(live: LiveModel, { columns, start, end }: BatchPart, outputs: readonly StatisticColumns[]): void {
  const slice = outputs.map(({ statistic, predicted: { ttftMs, tpotMs } }) => {
    return { statistic, predicted: { ttftMs: ttftMs.subarray(start, end), tpotMs: tpotMs.subarray(start, end) } };
  });
  live.predictStatistics(viewColumns(columns, start, end), slice);
}
