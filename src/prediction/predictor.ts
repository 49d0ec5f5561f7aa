/**
 * Serving: answers a whole call from the promoted model of its target model. Synchronous and without garbage per row;
 * a new version replaces the old one between two calls, so no call waits or sees half of each.
 */
import type { PredictColumns, PredictedColumns, Predictor } from './columns.ts';
import { createPriorModel, findTargetModel, type LatencyModel, normalizePodType } from './model.ts';
import { createSlotEvaluator, type SlotEvaluator, toStatistic } from './slot-evaluator.ts';

export interface SwappablePredictor extends Predictor {
  /** Serves this model from the next call on; undefined goes back to the prior. */
  swap(targetModel: string, model: LatencyModel | undefined): void;
  /** The names that are served, with their version ids. */
  list(): { readonly targetModel: string; readonly id: string }[];
}

export function createPredictor(): SwappablePredictor {
  const models = new Map<string, ServedModel>();
  const prior = serveModel(createPriorModel());
  return {
    swap(targetModel, model) {
      if (model === undefined) models.delete(targetModel);
      else models.set(targetModel, serveModel(model));
    },
    hasModel: (targetModel) => models.has(targetModel),
    list: () => [...models].map(([targetModel, { model }]) => ({ targetModel, id: model.id })),
    predict(targetModel, columns, predicted) {
      const served = models.get(targetModel) ?? prior;
      served.predict(columns, predicted);
      return served.model.id;
    },
  };
}

export interface ServedModel {
  readonly model: LatencyModel;
  /** Fills `predicted` for the first `columns.count` rows. */
  predict(columns: PredictColumns, predicted: PredictedColumns): void;
}

/** Most calls have fewer candidates; those that have more make the evaluators grow once. */
const FIRST_CAPACITY = 128;

export function serveModel(model: LatencyModel): ServedModel {
  const evaluators = new Map<string, SlotEvaluator>();

  function findEvaluator(podType: string, count: number): SlotEvaluator {
    // Pod types without models of their own share one evaluator: callers may send any text.
    const slot = normalizePodType(podType);
    const key = model.slots.has(slot) ? slot : '\0whole';
    const known = evaluators.get(key);
    if (known !== undefined && known.capacity >= count) return known;
    const capacity = Math.max(FIRST_CAPACITY, 2 ** Math.ceil(Math.log2(count)));
    const made = createSlotEvaluator(
      findTargetModel(model, podType, 'ttft'),
      findTargetModel(model, podType, 'tpot'),
      capacity,
    );
    evaluators.set(key, made);
    return made;
  }

  return {
    model,
    predict(columns, predicted) {
      // A call has one pod type, or few: with several, each slot evaluates all rows and answers its own.
      const slots = Math.max(1, columns.podTypes.length);
      for (let podType = 0; podType < slots; podType++) {
        const evaluator = findEvaluator(columns.podTypes[podType] ?? '', columns.count);
        if (podType === 0 || evaluator !== findEvaluator(columns.podTypes[podType - 1]!, columns.count))
          evaluator.evaluate(columns);
        for (let i = 0; i < columns.count; i++) {
          if (slots > 1 && columns.podType[i] !== podType) continue;
          predicted.ttftMs[i] = toStatistic(evaluator.ttft, model.statistic, evaluator.ttftMs[i]!);
          predicted.tpotMs[i] = toStatistic(evaluator.tpot, model.statistic, evaluator.tpotMs[i]!);
        }
      }
    },
  };
}
