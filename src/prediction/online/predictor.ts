/**
 * Answers each call from the promoted version of its target model, and swaps versions between two calls. No call waits for a
 * swap. Large calls of llm-d, which are answered in slices, begin again after one (`llm-d/answer-rows.ts`).
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

export interface SwappablePredictor extends Predictor, BatchPredictor {
  /** Serves this model from the next call on; undefined goes back to the prior. Weights, quantiles and histories stay; residuals of servers are computed again from the newest rows. */
  swap(targetModel: string, model: LatencyModel | undefined): void;
  /** The same, prepared in steps between which calls are answered. One at a time for a target model. */
  swapBetweenCalls(targetModel: string, model: LatencyModel): Promise<void>;
  /** The live model of a target model; without a trained model, it starts from the prior. */
  live(targetModel: string): LiveModel;
  /** The name under which that live model is saved: SHARED_NAME for the one that target models share. */
  liveNameOf(targetModel: string): string;
  /** The names that are served, with their version ids. */
  list(): { readonly targetModel: string; readonly id: string }[];
}

/** Target models without a model of their own that may keep a live state: callers may send any name. The others share one. */
const MAX_UNTRAINED = 256;
/** No report may name it: a target model is never empty. */
export const SHARED_NAME = '';
/** Most rows that are predicted at once, since evaluators keep room for the largest call. */
const ROWS_AT_ONCE = 4096;

export function createPredictor(world: Pick<World, 'nowMs'> = realWorld): SwappablePredictor {
  const models = new Map<string, LiveModel>();
  const trained = new Set<string>();
  const prior = createPriorModel();
  const untrained = createLiveModel(prior, world);

  /** The live model of a name that is trained from now on. */
  function openTrained(targetModel: string): LiveModel {
    const live = models.get(targetModel) ?? createLiveModel(prior, world);
    models.set(targetModel, live);
    return live;
  }

  return {
    async swapBetweenCalls(targetModel, model) {
      const live = openTrained(targetModel);
      for (const _ of live.prepareSwap(model)) await yieldToCalls();
      trained.add(targetModel);
    },
    swap(targetModel, model) {
      if (model !== undefined) {
        openTrained(targetModel).replaceModel(model);
        trained.add(targetModel);
        return;
      }
      models.get(targetModel)?.replaceModel(prior);
      trained.delete(targetModel);
    },
    liveNameOf: (targetModel) => (models.has(targetModel) ? targetModel : SHARED_NAME),
    live(targetModel) {
      const known = models.get(targetModel);
      if (known !== undefined) return known;
      if (targetModel === SHARED_NAME || models.size - trained.size >= MAX_UNTRAINED) return untrained;
      const live = createLiveModel(prior, world);
      models.set(targetModel, live);
      return live;
    },
    hasModel: (targetModel) => trained.has(targetModel),
    list: () => [...trained].map((targetModel) => ({ targetModel, id: models.get(targetModel)!.model.id })),
    predict(targetModel, columns, predicted) {
      const live = models.get(targetModel) ?? untrained;
      live.predict(columns, predicted);
      return live.model.id;
    },
    predictBatch(targetModel, columns, statistics) {
      const live = models.get(targetModel) ?? untrained;
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
