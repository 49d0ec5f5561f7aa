/**
 * Defines a trained model, and decides which part answers a pod type: its slot, the pooled model, or the prior (fallback). The
 * trees fit the logarithm of observed / physics. The values are immutable, and `slot-evaluator.ts` computes with them.
 */

import type { BoostOptions } from '../gbdt/training/boost.ts';
import type { Forest } from '../gbdt/tree.ts';
import { createPriorPhysics, type PhysicsModel } from '../physics/physics.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import { normalizePodType } from '../schema/pod-type.ts';
import { type Calibration, type Statistic, unknownCalibration } from './calibration.ts';
import type { ImportedTrees } from './imported-trees.ts';
import { NO_OFFSETS, type ServerOffsets } from './server-offsets.ts';

export interface TimeModel {
  /** It was trained on this many rows. */
  readonly rows: number;
  /** Physics and trees predict for a server with the offset 0. */
  readonly offsets: ServerOffsets;
  readonly physics: PhysicsModel;
  /** Undefined while rows are few. */
  readonly forest: Forest | undefined;
  /** The server offsets that the trees take as inputs: those of both targets when the slot was trained. If absent, all are 0. */
  readonly slotOffsets?: SlotOffsets;
  /**
   * The trees correct physics plus this, in milliseconds. The sum rises with the load by a smaller factor than physics does:
   * trees that may only rise with the load cannot correct physics that rises too fast. 0 in models of an earlier program.
   */
  readonly treeBaseMs: number;
  /** The correction of the trees is multiplied by this share, 0 to 1, which is chosen on held-out rows. */
  readonly forestShare: number;
  readonly calibration: Calibration;
  /** Its errors on rows that were held out of its training; undefined without such rows. */
  readonly validation: Validation | undefined;
  /** Trees of another library. They answer alone, without our physics and trees. */
  readonly imported?: ImportedTrees;
}

export type SlotOffsets = Readonly<Record<PredictionTarget, ServerOffsets>>;

/** Errors relative to the observed time, in percent. */
export interface Validation {
  readonly rows: number;
  readonly mape: number;
  readonly mdape: number;
}

/** A slot: the models of one pod type, or of all pod types together; a target without observations is absent. */
export type SlotModels = Partial<Readonly<Record<PredictionTarget, TimeModel>>>;

/** The parameters of a training. The same rows and parameters give the same model. */
export type LearningParameters = Omit<BoostOptions, 'kernel' | 'base' | 'monotone' | 'unused'>;

export interface LatencyModel {
  /** `qwen3-32b@17`. */
  readonly id: string;
  readonly statistic: Statistic;
  /** Undefined if it was not trained here. */
  readonly parameters?: LearningParameters;
  /** The slots by pod type, as `normalizePodType` writes it. */
  readonly slots: ReadonlyMap<string, SlotModels>;
  /** The pooled model, trained on the rows of all pod types. It answers for pod types without a slot. */
  readonly pooled: SlotModels;
}

export const PRIOR_ID = 'prior@1';

/** Its slots are empty, so each is answered by `createTargetPrior`. The numbers of the prior are in `physics/terms.ts`. */
export function createPriorModel(): LatencyModel {
  return { id: PRIOR_ID, statistic: 'p50', slots: new Map(), pooled: {} };
}

const PRIORS = Object.fromEntries(PREDICTION_TARGETS.map((target) => [target, createTargetPrior(target)])) as Readonly<
  Record<PredictionTarget, TimeModel>
>;

export function createTargetPrior(target: PredictionTarget): TimeModel {
  const calibration = unknownCalibration();
  return {
    rows: 0,
    offsets: NO_OFFSETS,
    physics: createPriorPhysics(target),
    forest: undefined,
    treeBaseMs: 0,
    forestShare: 0,
    calibration,
    validation: undefined,
  };
}

/** Finds the model that answers for a pod type: that of its slot, else the pooled one, else the prior. */
export function findTimeModel(model: LatencyModel, podType: string, target: PredictionTarget): TimeModel {
  return model.slots.get(normalizePodType(podType))?.[target] ?? model.pooled[target] ?? PRIORS[target];
}
