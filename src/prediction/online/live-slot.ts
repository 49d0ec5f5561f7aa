/** Predicts for one pod type: evaluates the trained model, and adjusts its estimates with a predictor for each target. */
import { findTimeModel, type LatencyModel } from '../model/model.ts';
import { createSlotEvaluator, type SlotEstimates, type SlotEvaluator } from '../model/slot-evaluator.ts';
import type { MetricColumns } from '../schema/observation-table.ts';
import type { ServerIndex } from '../schema/server-index.ts';
import { createOffsetColumn } from './live-offsets.ts';
import type { ResidualTracker } from './residual-tracker.ts';
import { createTargetPredictor, type TargetPredictor } from './target-predictor.ts';

/** The model of a slot alone, without what was learned from reports. */
export interface SlotModel {
  /** The estimates for all rows of a call. `servers` has the number of each row's server, -1 where unknown. */
  estimate(columns: MetricColumns, servers: Int32Array): SlotEstimates;
}

export interface LiveSlot extends SlotModel {
  readonly ttft: TargetPredictor;
  readonly tpot: TargetPredictor;
  /** The most rows of one call. */
  readonly capacity: number;
  /** The same model with room for more rows. */
  grow(evaluator: SlotEvaluator): void;
  replaceModel(evaluator: SlotEvaluator): void;
  /** Must be called before this number is given to another server. */
  forgetServer(server: number): void;
}

export interface LiveSlotOptions {
  /** The pod type as `normalizePodType` writes it. */
  readonly podType: string;
  readonly tracker: ResidualTracker;
}

export function createLiveSlot(initial: SlotEvaluator, { podType, tracker }: LiveSlotOptions): LiveSlot {
  const ttft = createTargetPredictor('ttft', { tracker, podType, initial: initial.models.ttft });
  const tpot = createTargetPredictor('tpot', { tracker, podType, initial: initial.models.tpot });
  let evaluator = initial;
  let model = createSlotModel(evaluator, podType, tracker.servers);

  return {
    ttft,
    tpot,
    get capacity() {
      return evaluator.capacity;
    },
    estimate: (columns, servers) => model.estimate(columns, servers),
    grow(larger) {
      evaluator = larger;
      model = createSlotModel(evaluator, podType, tracker.servers);
    },
    replaceModel(next) {
      evaluator = next;
      model = createSlotModel(evaluator, podType, tracker.servers);
      ttft.replaceModel(next.models.ttft);
      tpot.replaceModel(next.models.tpot);
    },
    forgetServer(server) {
      model.forget(server);
      ttft.forgetServer(server);
      tpot.forgetServer(server);
    },
  };
}

/** `forget` must be called before the number of a server is given to another one. */
export function createSlotModel(
  evaluator: SlotEvaluator,
  podType: string,
  index: ServerIndex,
): SlotModel & { forget(server: number): void } {
  const offsetColumns = evaluator.offsetInputs.map((offsets) => createOffsetColumn(offsets, podType, index));
  return {
    estimate(columns, servers) {
      const { count } = columns;
      return evaluator.evaluate(
        columns,
        offsetColumns.map((column) => column.fill(servers, count)),
      );
    },
    forget(server) {
      for (const column of offsetColumns) column.forget(server);
    },
  };
}

/** Most calls have fewer candidates; a larger call makes its evaluator grow once. */
export const FIRST_CAPACITY = 128;

export function createPodTypeEvaluator(model: LatencyModel, podType: string, count: number): SlotEvaluator {
  const capacity = Math.max(FIRST_CAPACITY, 2 ** Math.ceil(Math.log2(count)));
  const ttft = findTimeModel(model, podType, 'ttft');
  return createSlotEvaluator(ttft, findTimeModel(model, podType, 'tpot'), capacity);
}
