/**
 * Fits the physics prior to the first observed times, before the first training. A token or a waiting request may cost a tenth
 * of what the prior assumes, and thousands of requests may come before that training.
 */
import { createTargetPrior, type LatencyModel, type TimeModel } from '../model/model.ts';
import { evaluatePhysics, fitPhysics } from '../physics/physics.ts';
import { MODEL_COLUMNS } from '../schema/columns.ts';
import { type MetricColumns, PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import type { RecentRow } from './recent-rows.ts';

/**
 * The prior is fitted at `LEAST_ROWS` observed times of a target, at each doubling up to `MOST_ROWS`, and then after every
 * `MOST_ROWS` more. A fit uses at most the newest `MOST_ROWS` rows of all targets.
 */
const LEAST_ROWS = 4;
const MOST_ROWS = 512;
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

/**
 * Fits a prior to the newest of these rows for each target that was never trained. A target with too few rows is answered by the
 * built-in prior.
 */
export function fitPriors(
  model: LatencyModel,
  recent: readonly RecentRow[],
  targets: readonly PredictionTarget[] = PREDICTION_TARGETS,
): LatencyModel {
  const rows = recent.slice(-MOST_ROWS);
  const unlearned = targets.filter((target) => !hasLearned(model, target));
  if (rows.length < LEAST_ROWS || unlearned.length === 0) return model;
  const fitted = unlearned.map((target) => [target, fitPrior(target, rows)] as const);
  // A target without a model is answered by the prior, and counts as one that was not learned.
  if (fitted.every(([target, prior]) => prior === model.pooled[target])) return model;
  const kept = Object.entries({ ...model.pooled, ...Object.fromEntries(fitted) }).filter(
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

/** Undefined if the built-in prior stays: the target has few rows, and they do not show that the prior is much too slow. */
function fitPrior(target: PredictionTarget, recent: readonly RecentRow[]): TimeModel | undefined {
  const rows = recent.filter((row) => row.target === target);
  const prior = createTargetPrior(target);
  const load = { count: rows.length } as MetricColumns;
  for (const [m, name] of MODEL_COLUMNS.entries()) load[name] = Float64Array.from(rows, ({ metrics }) => metrics[m]!);
  const observed = Float64Array.from(rows, ({ observedMs }) => observedMs);
  if (rows.length < LEAST_ROWS) return undefined;
  if (rows.length < SURE_ROWS && !isTooSlow(prior, load, observed)) return undefined;
  return { ...prior, physics: fitPhysics(target, load, observed) };
}

function isTooSlow({ physics }: TimeModel, load: MetricColumns, observed: Float64Array): boolean {
  const predicted = new Float64Array(load.count);
  evaluatePhysics(physics, load, load.count, predicted);
  const logRatios = observed.map((ms, i) => Math.log(ms / predicted[i]!)).sort();
  return logRatios[load.count >> 1]! < TOO_SLOW;
}
