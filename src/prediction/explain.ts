/** Why a prediction is what it is: the physics' terms in milliseconds, then the factors by which the trees moved it. */
import { computeFeatures, FEATURE_COUNT, FEATURE_NAMES } from './features.ts';
import { explainRow } from './gbdt/shap.ts';
import type { TargetModel } from './model.ts';
import type { MetricColumns, Target } from './observation-table.ts';
import { countTerms, listTermNames, readTerms } from './physics/terms.ts';

export interface PredictionExplanation {
  /** Milliseconds that each term adds. */
  readonly physics: Readonly<Record<string, number>>;
  /** What the trees multiply every prediction with, and what each feature multiplies this one with (Shapley values). */
  readonly treeFactors: Readonly<Record<string, number>>;
}

/** Factors nearer to 1 than this say nothing. */
const LEAST_EFFECT = 0.005;

/** Explains the one row of `columns`. */
export function explainPrediction(target: Target, model: TargetModel, columns: MetricColumns): PredictionExplanation {
  const values = new Float64Array(countTerms(target));
  readTerms(target, columns, 0, values);
  const terms = listTermNames(target).map((name, t): [string, number] => [
    name,
    values[t]! * model.physics.coefficients[t]!,
  ]);
  return {
    physics: Object.fromEntries(terms.filter(([, milliseconds]) => milliseconds > 0)),
    treeFactors: Object.fromEntries(listTreeFactors(model, columns)),
  };
}

/** The most important first. Their product, and the level, is what physics is multiplied with. */
function listTreeFactors({ forest, forestShare }: TargetModel, columns: MetricColumns): [string, number][] {
  if (forest === undefined || forestShare === 0) return [];
  const features = new Float32Array(FEATURE_COUNT);
  computeFeatures(columns, features, 1);
  const { expectation, contributions } = explainRow(forest, features);
  const effects = FEATURE_NAMES.map((name, f): [string, number] => [name, forestShare * contributions[f]!]);
  return [
    ['level', Math.exp(forestShare * expectation)],
    ...effects
      .filter(([, effect]) => Math.abs(effect) >= LEAST_EFFECT)
      .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]))
      .map(([name, effect]): [string, number] => [name, Math.exp(effect)]),
  ];
}
