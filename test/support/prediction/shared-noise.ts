/** Generates times of requests at one server, where concurrent requests are slow or fast together, and a model of their median. */
import {
  createPriorModel,
  createTargetPrior,
  type LatencyModel,
  type TimeModel,
} from '../../../src/prediction/model/model.ts';
import { createPredictColumns, MODEL_COLUMNS } from '../../../src/prediction/schema/columns.ts';
import type { PredictionTarget } from '../../../src/prediction/schema/observation-table.ts';
import { createRandom, drawLogNormal, type Random } from '../../../src/prediction/simulator/random-draws.ts';

interface NoisyServer {
  readonly requests: number;
  /** Each request ends when this many have been sent after it. */
  readonly underWay: number;
  readonly seed: number;
}

const MEDIAN_MS = 20;
const COMMON_SIGMA = 0.3;
const OWN_SIGMA = 0.1;

/** The time per token of each request: the mean load while it ran, which changes about once in the time of a request. */
export function observeSharedNoise({ requests, underWay, seed }: NoisyServer): Float64Array {
  const random = createRandom(seed);
  const kept = Math.exp(-1 / underWay);
  let load = 0;
  const loads = Float64Array.from({ length: requests + underWay }, () => {
    load = kept * load + Math.sqrt(1 - kept * kept) * drawLog(random, COMMON_SIGMA);
    return load;
  });
  return Float64Array.from({ length: requests }, (_, i) => {
    const sum = loads.subarray(i, i + underWay).reduce((total, each) => total + each, 0);
    return MEDIAN_MS * Math.exp(sum / underWay + drawLog(random, OWN_SIGMA));
  });
}

function drawLog(random: Random, sigma: number): number {
  return Math.log(drawLogNormal(random, 1, sigma));
}

/** Each call returns another version with the same content. */
export function modelOfMedian(id: string): LatencyModel {
  const calibration = {
    edges: new Float64Array(0),
    quantiles: Float64Array.of(-0.5, -0.38, -0.2, 0, 0.2, 0.38, 0.5, 0.7),
    logMeans: Float64Array.of(0.05),
    rows: 200,
  };
  const learned = (target: PredictionTarget): TimeModel => ({ ...createTargetPrior(target), rows: 100, calibration });
  return { ...createPriorModel(), id, pooled: { ttft: learned('ttft'), tpot: learned('tpot') } };
}

/** The load of the server, which is always the same. */
export function fillSteadyLoad() {
  const columns = createPredictColumns(1);
  columns.count = 1;
  for (const name of MODEL_COLUMNS) columns[name][0] = 0;
  columns.inputTokenLength[0] = 500;
  columns.numRequestRunning[0] = 20;
  return columns;
}
