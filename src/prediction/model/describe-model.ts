/** Summarizes a model for people: rows, trees, validation errors and prices of physics for each target of each slot. */
import { listTermNames } from '../physics/terms.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import type { Statistic } from './calibration.ts';
import type { ImportedTrees } from './imported-trees.ts';
import type { LatencyModel, LearningParameters, SlotModels, TimeModel, Validation } from './model.ts';

export interface TargetSummary {
  /** `all` for the pooled model. */
  readonly podType: string;
  readonly target: PredictionTarget;
  readonly rows: number;
  readonly trees: number;
  readonly treeShare: number;
  readonly validation: Validation | undefined;
  /** The price of each term in milliseconds per unit, without those that are 0. */
  readonly physics: Readonly<Record<string, number>>;
  /** Describes imported trees, which answer in place of our physics and trees. */
  readonly imported?: {
    readonly library: string;
    readonly transform: string;
    readonly unit: string;
    /** Maps the file's names of features to those of this program, or to constants. */
    readonly features: Readonly<Record<string, string | number>>;
  };
}

/** How a model was trained, from its lineage. */
export type LineageParameters = LearningParameters & { readonly statistic: Statistic };

/** Undefined for a model that was not trained here. */
export function describeParameters({ statistic, parameters }: LatencyModel): LineageParameters | undefined {
  return parameters && { statistic, ...parameters };
}

export function describeModel(model: LatencyModel): TargetSummary[] {
  return [
    ...describeSlot('all', model.pooled),
    ...[...model.slots].flatMap(([podType, slot]) => describeSlot(podType || 'aggregate', slot)),
  ];
}

function describeSlot(podType: string, slot: SlotModels): TargetSummary[] {
  return PREDICTION_TARGETS.flatMap((target) =>
    slot[target] === undefined ? [] : [describeTarget(podType, target, slot[target])],
  );
}

function describeTarget(podType: string, target: PredictionTarget, model: TimeModel): TargetSummary {
  if (model.imported !== undefined) return describeImported(podType, target, model.imported);
  const terms = listTermNames(target).map((name, t): [string, number] => [name, model.physics.coefficients[t]!]);
  return {
    podType,
    target,
    rows: model.rows,
    trees: model.forestShare > 0 ? (model.forest?.treeCount ?? 0) : 0,
    treeShare: model.forestShare,
    validation: model.validation,
    physics: Object.fromEntries(terms.filter(([, coefficient]) => coefficient > 0)),
  };
}

function describeImported(podType: string, target: PredictionTarget, imported: ImportedTrees): TargetSummary {
  const { library, forest, transform, unit, sources } = imported;
  const features = Object.fromEntries(sources.map(({ name, from }) => [name, from]));
  return {
    podType,
    target,
    rows: 0,
    trees: forest.roots.length,
    treeShare: 1,
    validation: undefined,
    physics: {},
    imported: { library, transform, unit, features },
  };
}
