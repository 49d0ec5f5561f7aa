import type { LatencyModel } from '../../src/prediction/model/model.ts';
import { createPredictor, type SwappablePredictor } from '../../src/prediction/online/predictor.ts';
import { fillMetrics } from '../../src/prediction/schema/input-fields.ts';
import type { Observation } from '../../src/prediction/schema/observation.ts';
import { appendObservation, createObservationTable } from '../../src/prediction/schema/observation-table.ts';
import { trainModel } from '../../src/prediction/training/train-model.ts';

/** Trains a model of made-up servers, with as many trees as training keeps; its predictions do not matter here. */
export function createTrainedPredictor(): SwappablePredictor {
  const predictor = createPredictor();
  predictor.swap('qwen3-32b', trainSyntheticModel(5000));
  return predictor;
}

const random = createRandom(1);

export function createObservations(count: number): Observation[] {
  return Array.from({ length: count }, () => createObservation(random));
}

export function trainSyntheticModel(rows: number): LatencyModel {
  const table = createObservationTable(rows);
  for (const observation of createObservations(rows)) appendObservation(table, observation);
  const model = trainModel('qwen3-32b@1', table);
  const { ttft, tpot } = model.pooled;
  if (!(ttft!.forestShare > 0 && tpot!.forestShare > 0))
    throw new Error('The trees are not believed: nothing to measure');
  return model;
}

function createObservation(random: () => number): Observation {
  const input = {
    podType: 'decode',
    ...fillMetrics(() => 0),
    inputTokenLength: Math.floor(100 + 4000 * random()),
    prefixCacheScore: random(),
    numRequestWaiting: Math.floor(8 * random() ** 2),
    numRequestRunning: Math.floor(30 * random()),
    kvCacheUsage: random(),
    inflightTokens: Math.floor(20_000 * random()),
    hbmUtilization: random(),
    aiCoreUtilization: random(),
    bandwidthUtilization: random(),
    serverIp: `10.12.0.${Math.floor(20 * random())}`,
  };
  const noise = 0.9 + 0.2 * random();
  // Steps that the physics cannot fit, so that held-out rows support the trees and their cost is measured.
  const stall = (input.kvCacheUsage > 0.8 ? 2 : 1) * (input.hbmUtilization > 0.5 ? 1.3 : 1) * noise;
  return {
    targetModel: 'qwen3-32b',
    input,
    atMs: undefined,
    ttftMs: (20 + input.inputTokenLength * (1 - input.prefixCacheScore) * 0.05 + input.numRequestWaiting * 40) * stall,
    tpotMs: (6 + input.numRequestRunning * 0.4 + input.kvCacheUsage * 5) * stall,
  } as Observation;
}

/** Mulberry32: the same rows in every run. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
