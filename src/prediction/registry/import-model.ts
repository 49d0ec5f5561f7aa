/** Makes a model of XGBoost or LightGBM answer one target of one of our models. */
import { Failure } from '../../errors.ts';
import type { ImportedForest } from '../formats/imported-forest.ts';
import { parseLightgbmText } from '../formats/lightgbm-text.ts';
import { parseXgboostJson } from '../formats/xgboost-json.ts';
import { calibrationOfMeans, type Statistic, unknownCalibration } from '../model/calibration.ts';
import { INPUT_FEATURE_NAMES, isInputFeature } from '../model/features.ts';
import type { FeatureSource, ImportedTrees, TimeUnit, Transform } from '../model/imported-trees.ts';
import type { LatencyModel, SlotModels, TimeModel } from '../model/model.ts';
import { NO_OFFSETS } from '../model/server-offsets.ts';
import { createPriorPhysics } from '../physics/physics.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';
import { normalizePodType } from '../schema/pod-type.ts';

export type ModelFileKind = 'trivet' | 'XGBoost' | 'LightGBM';

/** Detects the kind of a model file by its first bytes. Throws `invalid` for any other file. */
export function detectModelFile(file: Uint8Array): ModelFileKind {
  const start = Buffer.from(file.subarray(0, 64)).toString('latin1');
  if (start.startsWith('TRVMODEL')) return 'trivet';
  if (/^tree\s/.test(start)) return 'LightGBM';
  if (/^\s*\{\s*"/.test(start) && Buffer.from(file).includes('"learner"')) return 'XGBoost';
  if (start.startsWith('{L')) throw refuse("this is XGBoost's UBJSON, save it as booster.save_model('model.json')");
  throw refuse('it must be a model of ours, JSON of XGBoost (model.json) or text of LightGBM (model.txt)');
}

export interface ImportOrder {
  readonly kind: Exclude<ModelFileKind, 'trivet'>;
  readonly text: string;
  /** Maps feature names of the file to ours; a feature without an entry is found by its own name. */
  readonly features: ReadonlyMap<string, string>;
  readonly transform: Transform;
  readonly unit: TimeUnit;
}

export function importTrees(order: ImportOrder): ImportedTrees {
  const { forest, featureNames } =
    order.kind === 'XGBoost' ? parseXgboostJson(order.text) : parseLightgbmText(order.text);
  // A Poisson or gamma objective applies the logarithm itself, so a second one would be a mistake.
  if (forest.link === 'exp' && order.transform !== 'identity')
    throw refuse(
      `--transform must be identity for an objective that predicts times by itself, got "${order.transform}"`,
    );
  const sources = mapFeatures(order, { forest, featureNames });
  return { library: order.kind, forest, sources, transform: order.transform, unit: order.unit };
}

/** llm-d's names of our features. */
const KNOWN_AS: ReadonlyMap<string, string> = new Map([
  ['kv_cache_percentage', 'kv_cache_usage'],
  ['effective_input_tokens', 'effective_tokens'],
]);

function mapFeatures({ kind, features }: ImportOrder, { forest, featureNames }: ImportedForest): FeatureSource[] {
  const names = featureNames.length > 0 ? featureNames : Array.from({ length: forest.featureCount }, (_, f) => `f${f}`);
  if (names.length !== forest.featureCount)
    throw refuse(`the ${kind} model has ${names.length} names for ${forest.featureCount} features`);
  const stranger = [...features.keys()].find((name) => !names.includes(name));
  if (stranger !== undefined)
    throw refuse(
      `--features names "${stranger}", which the ${kind} model does not ask for; it asks for ${names.join(', ')}`,
    );
  return names.map((name) => ({ name, from: findSource(name, features.get(name)) }));
}

function findSource(name: string, given: string | undefined): string | number {
  const source = given ?? KNOWN_AS.get(name) ?? name;
  if (isInputFeature(source)) return source;
  if (given !== undefined && given.trim() !== '' && Number.isFinite(Number(given))) return Number(given);
  const mapping = given === undefined ? name : `${name}=${given}`;
  throw refuse(
    `feature "${mapping}" is no field of an input; give --features ${name}=FIELD or ${name}=NUMBER, where FIELD is one of ${INPUT_FEATURE_NAMES.join(', ')}`,
  );
}

export interface Placement {
  readonly target: PredictionTarget;
  /** Undefined for all pod types: then models of single pod types no longer answer this target. */
  readonly podType: string | undefined;
  readonly statistic: Statistic;
}

/** Returns a copy of `base` in which these trees answer the target. */
export function placeImported(base: LatencyModel, imported: ImportedTrees, placement: Placement): LatencyModel {
  const { target, podType, statistic } = placement;
  const answering: TimeModel = {
    rows: 0,
    offsets: NO_OFFSETS,
    physics: createPriorPhysics(target),
    forest: undefined,
    treeBaseMs: 0,
    forestShare: 0,
    calibration: statistic === 'mean' ? calibrationOfMeans() : unknownCalibration(),
    validation: undefined,
    imported,
  };
  if (podType !== undefined) {
    const name = normalizePodType(podType);
    const slots = new Map(base.slots).set(name, { ...base.slots.get(name), [target]: answering });
    return { ...base, statistic, slots };
  }
  const others = [...base.slots].map(([name, slot]): [string, SlotModels] => [name, withoutTarget(slot, target)]);
  return {
    ...base,
    statistic,
    pooled: { ...base.pooled, [target]: answering },
    slots: new Map(others.filter(([, slot]) => Object.keys(slot).length > 0)),
  };
}

function withoutTarget(slot: SlotModels, target: PredictionTarget): SlotModels {
  return Object.fromEntries(Object.entries(slot).filter(([name]) => name !== target));
}

function refuse(reason: string): Failure {
  return new Failure('invalid', `Cannot import the model: ${reason}`);
}
