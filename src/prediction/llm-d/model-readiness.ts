/** Tells llm-d's endpoints whether a model is ready and which version is served. */
import type { World } from '../../world.ts';
import { type LatencyModel, PRIOR_ID } from '../model/model.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';

export interface ModelReadiness {
  /** True if predictions are answered. */
  readonly isReady: boolean;
  /** True if anything was learned about TTFT; the next field is about TPOT. */
  readonly hasTtft: boolean;
  readonly hasTpot: boolean;
  /** Since when the present version answers. */
  readonly loadedAt: Date | undefined;
}

export interface ReadinessDependencies {
  readonly predictor: Pick<SwappablePredictor, 'hasModel' | 'live' | 'list'>;
  readonly unknownModel: 'prior' | 'reject';
  readonly world: Pick<World, 'nowMs'>;
}

export type ReadReadiness = (targetModel: string) => ModelReadiness;

/** A limit, because callers may ask for any name. */
const MAX_MODELS = 10_000;

/** A version counts as loaded when this was first read with it: clients of llm-d only display the time. */
export function createReadinessReader({ predictor, unknownModel, world }: ReadinessDependencies): ReadReadiness {
  const loadedById = new Map<string, Date>();
  const readLoaded = (id: string): Date => {
    const loadedAt = loadedById.get(id) ?? new Date(world.nowMs());
    loadedById.set(id, loadedAt);
    if (loadedById.size > MAX_MODELS) loadedById.delete(loadedById.keys().next().value!);
    return loadedAt;
  };
  return (targetModel) => {
    if (!predictor.hasModel(targetModel))
      return { isReady: unknownModel === 'prior', hasTtft: false, hasTpot: false, loadedAt: undefined };
    const { model } = predictor.live(targetModel);
    const loadedAt = model.id === PRIOR_ID ? undefined : readLoaded(model.id);
    return { isReady: true, hasTtft: hasLearned(model, 'ttft'), hasTpot: hasLearned(model, 'tpot'), loadedAt };
  };
}

/** An imported model may answer for one pod type only. */
function hasLearned({ pooled, slots }: LatencyModel, target: PredictionTarget): boolean {
  return [pooled, ...slots.values()].some((slot) => slot[target] !== undefined);
}
