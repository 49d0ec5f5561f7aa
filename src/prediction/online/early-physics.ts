/**
 * Fits the prior of the physics again as soon as a few times were observed, until the first training. A token or a waiting
 * request may cost a tenth of what the prior assumes, and thousands of requests may come before that training.
 */
import { createTargetPrior, type LatencyModel, type TimeModel } from '../model/model.ts';
import { evaluatePhysics, fitPhysics } from '../physics/physics.ts';
import { restorePhysics, type SavedPhysics, savePhysics } from '../physics/saved-physics.ts';
import { MODEL_COLUMNS } from '../schema/columns.ts';
import { type MetricColumns, PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import type { RecentRow } from './recent-rows.ts';

/**
 * The prior is fitted at `LEAST_ROWS` observed times of a target, at each doubling up to `MOST_ROWS`, and then after every
 * `MOST_ROWS` more. A fit uses at most the newest `FITTED_ROWS` times of the target.
 */
const LEAST_ROWS = 4;
const MOST_ROWS = 512;
const FITTED_ROWS = 256;
/**
 * With fewer times than this, the prior is replaced only if it predicts at least twice what was observed: the first requests
 * after the start of a server are slower than all later ones.
 */
const SURE_ROWS = 16;
const TOO_SLOW = Math.log(0.5);

export interface EarlyPhysics {
  /** Counts one more observed time. True when the prior should now be fitted again. */
  isDue(target: PredictionTarget, model: LatencyModel): boolean;
}

export function createEarlyPhysics(): EarlyPhysics {
  const counts = { ttft: 0, tpot: 0 };
  return {
    isDue(target, model) {
      if (hasLearned(model, target)) return false;
      const count = ++counts[target];
      if (count >= MOST_ROWS) return count % MOST_ROWS === 0;
      return count >= LEAST_ROWS && Number.isInteger(Math.log2(count));
    },
  };
}

export interface FitOptions {
  readonly targets?: readonly PredictionTarget[];
  /** A target with too few rows keeps the prior of this model. */
  readonly present?: LatencyModel;
}

/** Fits a prior for each of the targets that was never trained, to the newest rows of that target. */
export function fitPriors(
  model: LatencyModel,
  recent: readonly RecentRow[],
  { targets = PREDICTION_TARGETS, present = model }: FitOptions = {},
): LatencyModel {
  const unlearned = targets.filter((target) => !hasLearned(model, target));
  return replacePriors(model, unlearned, (target) => {
    const { pooled } = hasLearned(present, target) ? model : present;
    return fitPrior(target, recent, pooled[target]);
  });
}

/** The priors of the targets that were never trained; null for the built-in one. */
export type SavedPriors = Readonly<Partial<Record<PredictionTarget, SavedPhysics | null>>>;

export function savePriors(model: LatencyModel): SavedPriors {
  const saved = listUnlearned(model).map((target) => {
    const prior = model.pooled[target];
    return [target, prior === undefined ? null : savePhysics(prior.physics)] as const;
  });
  return Object.fromEntries(saved);
}

/** The model with the saved priors of the targets that were never trained. */
export function restorePriors(model: LatencyModel, saved: SavedPriors): LatencyModel {
  const known = listUnlearned(model).filter((target) => saved[target] !== undefined);
  return replacePriors(model, known, (target) => {
    const physics = saved[target];
    return physics ? { ...createTargetPrior(target), physics: restorePhysics(target, physics) } : undefined;
  });
}

/** Returns the same model if all of its priors stay. A target without a prior is answered by the built-in one. */
function replacePriors(
  model: LatencyModel,
  targets: readonly PredictionTarget[],
  read: (target: PredictionTarget) => TimeModel | undefined,
): LatencyModel {
  const priors = targets.map((target) => [target, read(target)] as const);
  if (priors.every(([target, prior]) => prior === model.pooled[target])) return model;
  const kept = Object.entries({ ...model.pooled, ...Object.fromEntries(priors) }).filter(
    ([, known]) => known !== undefined,
  );
  return { ...model, pooled: Object.fromEntries(kept) };
}

/**
 * Names what each target is predicted by: the id of the model, and the prior of a target that was never trained. The same text
 * means the same predictions. Texts are cached until the model is replaced, since they are read for every report.
 */
export function createBasisReader(readModel: () => LatencyModel): (target: PredictionTarget) => string {
  let named: LatencyModel | undefined;
  let bases = { ttft: '', tpot: '' };
  return (target) => {
    const model = readModel();
    if (named !== model) bases = { ttft: nameBasis(model, 'ttft'), tpot: nameBasis(model, 'tpot') };
    named = model;
    return bases[target];
  };
}

function nameBasis(model: LatencyModel, target: PredictionTarget): string {
  return hasLearned(model, target) ? model.id : `${model.id} ${JSON.stringify(model.pooled[target]?.physics ?? null)}`;
}

/** The targets that a prior answers. */
export function listUnlearned(model: LatencyModel): PredictionTarget[] {
  return PREDICTION_TARGETS.filter((target) => !hasLearned(model, target));
}

/** Whether a target was trained or imported. If not, a prior answers it. */
export function hasLearned({ pooled }: LatencyModel, target: PredictionTarget): boolean {
  const model = pooled[target];
  return model !== undefined && (model.rows > 0 || model.imported !== undefined);
}

/** The present prior (undefined: the built-in one) stays if the target has few rows, and they do not show that it is much too slow. */
function fitPrior(
  target: PredictionTarget,
  recent: readonly RecentRow[],
  present: TimeModel | undefined,
): TimeModel | undefined {
  const rows = recent.filter((row) => row.target === target).slice(-FITTED_ROWS);
  if (rows.length < LEAST_ROWS) return present;
  const prior = createTargetPrior(target);
  const load = { count: rows.length } as MetricColumns;
  for (const [m, name] of MODEL_COLUMNS.entries()) load[name] = Float64Array.from(rows, ({ metrics }) => metrics[m]!);
  const observed = Float64Array.from(rows, ({ observedMs }) => observedMs);
  if (rows.length < SURE_ROWS && !isTooSlow(present ?? prior, load, observed)) return present;
  return { ...prior, physics: fitPhysics(target, load, observed) };
}

function isTooSlow({ physics }: TimeModel, load: MetricColumns, observed: Float64Array): boolean {
  const predicted = new Float64Array(load.count);
  evaluatePhysics(physics, load, load.count, predicted);
  const logRatios = observed.map((ms, i) => Math.log(ms / predicted[i]!)).sort();
  return logRatios[load.count >> 1]! < TOO_SLOW;
}
