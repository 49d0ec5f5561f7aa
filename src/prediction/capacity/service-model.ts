/** Draws the TTFT of one request at one server: the model's median, scattered by its residuals. */
import { type Calibration, findBucket, LEVELS } from '../model/calibration.ts';
import { findTimeModel, type LatencyModel } from '../model/model.ts';
import { createLiveModel } from '../online/live-model.ts';
import { createPredictColumns } from '../schema/columns.ts';
import { clampMs } from '../schema/milliseconds.ts';
import { LOAD_FIELDS, type LoadMetrics } from './load-curve.ts';

export interface ServiceRequest {
  readonly inputTokenLength: number;
  readonly prefixCacheScore: number;
}

export interface ServiceModel {
  /** The median TTFT of a request that meets this load. */
  predictTtft(server: string, request: ServiceRequest & LoadMetrics): number;
  /** A quantile of the TTFT whose median that is; `rank` is in [0, 1). */
  spreadTtft(medianMs: number, rank: number): number;
}

export function createServiceModel(model: LatencyModel, podType: string): ServiceModel {
  const median = createLiveModel({ ...model, statistic: 'p50' });
  const { calibration } = findTimeModel(model, podType, 'ttft');
  const columns = createPredictColumns(1);
  const predicted = { ttftMs: new Float64Array(1), tpotMs: new Float64Array(1) };
  const addresses = new Map<string, Uint8Array>();

  function addressOf(server: string): Uint8Array {
    const known = addresses.get(server);
    if (known !== undefined) return known;
    const address = Buffer.from(server);
    addresses.set(server, address);
    // A server that the model does not know has the offset of its pod type.
    median.servers.ensure(address);
    return address;
  }

  return {
    predictTtft(server, request) {
      columns.count = 1;
      columns.podTypes = [podType];
      columns.source = addressOf(server);
      columns.serverIpLength[0] = columns.source.length;
      columns.inputTokenLength[0] = request.inputTokenLength;
      columns.prefixCacheScore[0] = request.prefixCacheScore;
      for (const name of LOAD_FIELDS) columns[name][0] = request[name];
      median.predict(columns, predicted);
      return predicted.ttftMs[0]!;
    },
    spreadTtft: (medianMs, rank) => spread(medianMs, calibration, rank),
  };
}

/** The quantile of a time. Residuals are logarithms, known at some levels and interpolated linearly between them. */
function spread(medianMs: number, { edges, quantiles }: Calibration, rank: number): number {
  const start = findBucket(edges, medianMs) * LEVELS.length;
  const last = LEVELS.length - 1;
  let upper = 1;
  while (upper < last && LEVELS[upper]! < rank) upper++;
  const [low, high] = [LEVELS[upper - 1]!, LEVELS[upper]!];
  const share = Math.max(0, Math.min(1, (rank - low) / (high - low)));
  const [below, above] = [quantiles[start + upper - 1]!, quantiles[start + upper]!];
  return clampMs(medianMs * Math.exp(below + share * (above - below)));
}
