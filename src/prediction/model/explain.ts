/** Explains a prediction: terms of the physics in milliseconds, factors of trees and server. */

import { explainGeneralRow } from '../gbdt/general/general-shap.ts';
import { explainRow } from '../gbdt/shap.ts';
import { listTermNames, readTerms } from '../physics/terms.ts';
import { type MetricColumns, PREDICTION_TARGETS } from '../schema/observation-table.ts';
import { computeFeatures, FEATURE_COUNT, FEATURE_NAMES, OFFSET_FEATURES } from './features.ts';
import { describeOutput, type ImportedTrees, readImportedRow } from './imported-trees.ts';
import type { TimeModel } from './model.ts';
import { readServerOffset } from './server-offsets.ts';

/**
 * A prediction is sum(`physics`) × product(`treeFactors`) × `serverFactor` + sum(`treeMilliseconds`). The sum of an empty
 * `physics` counts as 1, but the whole product as 0 if `treeFactors` is empty too.
 */
export interface PredictionExplanation {
  /** Milliseconds that each term adds. */
  readonly physics: Readonly<Record<string, number>>;
  /**
   * `level` is the factor of the trees in every prediction, and `base` makes physics rise more slowly for them (`treeBaseMs`).
   * The others are the factors of each feature in this prediction (Shapley values).
   */
  readonly treeFactors: Readonly<Record<string, number>>;
  /** The base value of imported trees that add up times, and what each feature adds (Shapley values). */
  readonly treeMilliseconds?: Readonly<Record<string, number>>;
  /** The factor of the server's offset: how many times slower than its pool it was in the training samples. */
  readonly serverFactor: number;
}

/** Factors nearer to 1 than this, as logarithms, are combined into one (`others`). */
const LEAST_EFFECT = 0.005;

export interface ExplainedServer {
  readonly serverIp: string;
  readonly podType: string;
}

/** Explains the one row of `columns`, of this server. */
export function explainPrediction(
  model: TimeModel,
  columns: MetricColumns,
  server: ExplainedServer,
): PredictionExplanation {
  if (model.imported !== undefined) return explainImported(model.imported, columns);
  const { target } = model.physics;
  const values = readTerms(target, columns, 1);
  const terms = listTermNames(target).map((name, t): [string, number] => [
    name,
    values[t]![0]! * model.physics.coefficients[t]!,
  ]);
  const sum = terms.reduce((total, [, milliseconds]) => total + milliseconds, 0);
  // A prediction is at least the floor, even if the sum of the terms is below it.
  const floor: [string, number] = ['floor', model.physics.floorMs - sum];
  return {
    physics: Object.fromEntries([...terms, floor].filter(([, milliseconds]) => milliseconds > 0)),
    treeFactors: Object.fromEntries(listTreeFactors(model, Math.max(sum, model.physics.floorMs), { columns, server })),
    serverFactor: Math.exp(readServerOffset(model.offsets, server.serverIp, server.podType)),
  };
}

/** Explains the output of trees before their link function: times, which add up, or logarithms of factors, which multiply. */
function explainImported(imported: ImportedTrees, columns: MetricColumns): PredictionExplanation {
  const { expectation, contributions } = explainGeneralRow(imported.forest, readImportedRow(imported, columns));
  const { isAdded, unitMs } = describeOutput(imported);
  const effects = imported.sources
    .map(({ name }, f): [string, number] => [name, contributions[f]!])
    .filter(([, effect]) => effect !== 0)
    .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  if (isAdded) {
    const parts = effects.map(([name, effect]) => [name, unitMs * effect]);
    const treeMilliseconds = Object.fromEntries([['level', unitMs * expectation], ...parts]);
    return { physics: {}, treeFactors: {}, treeMilliseconds, serverFactor: 1 };
  }
  const factors = effects.map(([name, effect]) => [name, Math.exp(effect)]);
  const treeFactors = Object.fromEntries([['level', unitMs * Math.exp(expectation)], ...factors]);
  if (imported.transform !== 'log1p') return { physics: {}, treeFactors, serverFactor: 1 };
  return { physics: {}, treeFactors, treeMilliseconds: { 'log1p begins at': -unitMs }, serverFactor: 1 };
}

/** The most important first. Their product is exactly the factor that physics is multiplied by. */
function listTreeFactors(
  { forest, treeBaseMs, forestShare, slotOffsets }: TimeModel,
  physicsMs: number,
  { columns, server }: { readonly columns: MetricColumns; readonly server: ExplainedServer },
): [string, number][] {
  if (forest === undefined || forestShare === 0) return [];
  const features = new Float32Array(FEATURE_COUNT);
  computeFeatures(columns, features, 1);
  if (slotOffsets !== undefined)
    for (const target of PREDICTION_TARGETS)
      features[OFFSET_FEATURES[target]] = readServerOffset(slotOffsets[target], server.serverIp, server.podType);
  const { expectation, contributions } = explainRow(forest, features);
  const effects = FEATURE_NAMES.map((name, f): [string, number] => [name, forestShare * contributions[f]!]);
  const isLarge = ([, effect]: [string, number]) => Math.abs(effect) >= LEAST_EFFECT;
  const small = effects.filter((effect) => !isLarge(effect)).reduce((sum, [, effect]) => sum + effect, 0);
  return [
    ['level', Math.exp(forestShare * expectation)],
    ...(treeBaseMs === 0 ? [] : [['base', (1 + treeBaseMs / physicsMs) ** forestShare] as [string, number]]),
    ...effects
      .filter(isLarge)
      .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]))
      .map(([name, effect]): [string, number] => [name, Math.exp(effect)]),
    ['others', Math.exp(small)],
  ];
}
