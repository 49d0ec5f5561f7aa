/** Draws the TTFT of one request at one server: the model's median, scattered by its residuals. */
import { type Buckets, type Calibration, calibrate, describeBuckets, LEVELS, SHIFT_OF } from '../model/calibration.ts';
import { findTimeModel, type LatencyModel } from '../model/model.ts';
import { createLiveModel } from '../online/live-model.ts';
import { createPredictColumns } from '../schema/columns.ts';
import { clampMs } from '../schema/milliseconds.ts';
import type { Observation } from '../schema/observation.ts';
import { LOAD_FIELDS, type LoadMetrics } from './load-curve.ts';

export interface ServiceRequest {
  readonly inputTokenLength: number;
  readonly prefixCacheScore: number;
}

export interface ServiceModel {
  /** The median TTFT of a request that meets this load. */
  predictTtft(server: string, request: ServiceRequest & LoadMetrics): number;
  /** A quantile of the TTFT at a server whose predicted median that is; `rank` is in [0, 1). */
  spreadTtft(server: string, medianMs: number, rank: number): number;
}

/** From this many samples of a server, spread over all of them, the residuals of a model without measured ones are taken. */
const MEASURED_SAMPLES = 500;

/** The servers that are modelled, and the samples of each. */
export interface SampledServer {
  readonly name: string;
  readonly samples: readonly Observation[];
}

/** Imported trees come without residuals, so theirs are measured on samples, in steps of one server each. */
export function* createServiceModel(
  model: LatencyModel,
  podType: string,
  servers: readonly SampledServer[],
): Generator<void, ServiceModel> {
  const predictTtft = createMedian(model, podType);
  const { calibration } = findTimeModel(model, podType, 'ttft');
  const trained = createScatter(calibration);
  const measured = new Map<string, Scatter>();
  for (const server of calibration.rows > 0 ? [] : servers) {
    measured.set(server.name, createScatter(measureCalibration(server, predictTtft)));
    yield;
  }
  return {
    predictTtft,
    spreadTtft: (server, medianMs, rank) => spread(medianMs, measured.get(server) ?? trained, rank),
  };
}

function measureCalibration({ name, samples }: SampledServer, predictTtft: ServiceModel['predictTtft']): Calibration {
  const timed = samples.filter(({ ttftMs }) => ttftMs !== undefined);
  const count = Math.min(MEASURED_SAMPLES, timed.length);
  const picked = Array.from({ length: count }, (_, i) => timed[Math.floor((i * timed.length) / count)]!);
  return calibrate(
    Float64Array.from(picked, ({ input }) => predictTtft(name, input)),
    Float64Array.from(picked, ({ ttftMs }) => ttftMs!),
  );
}

function createMedian(model: LatencyModel, podType: string): ServiceModel['predictTtft'] {
  const median = createLiveModel({ ...model, statistic: 'p50' });
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

  return (server, request) => {
    columns.count = 1;
    columns.podTypes = [podType];
    columns.source = addressOf(server);
    columns.serverIpLength[0] = columns.source.length;
    columns.inputTokenLength[0] = request.inputTokenLength;
    columns.prefixCacheScore[0] = request.prefixCacheScore;
    for (const name of LOAD_FIELDS) columns[name][0] = request[name];
    median.predict(columns, predicted);
    return predicted.ttftMs[0]!;
  };
}

/** The residuals of a calibration, in buckets of predicted times. */
type Scatter = Buckets & Pick<Calibration, 'quantiles'>;

function createScatter({ edges, quantiles }: Calibration): Scatter {
  return { ...describeBuckets(edges), quantiles };
}

/**
 * The quantile of a time. Residuals are logarithms, known at some levels and interpolated linearly between them. Between buckets
 * they are smoothed as in answers, so that no quantile is shorter where the median is longer.
 */
function spread(medianMs: number, scatter: Scatter, rank: number): number {
  const last = LEVELS.length - 1;
  let upper = 1;
  while (upper < last && LEVELS[upper]! < rank) upper++;
  const [low, high] = [LEVELS[upper - 1]!, LEVELS[upper]!];
  const share = Math.max(0, Math.min(1, (rank - low) / (high - low)));
  const readShift = (bucket: number): number => {
    const level = bucket * LEVELS.length + upper;
    const [below, above] = [scatter.quantiles[level - 1]!, scatter.quantiles[level]!];
    return below + share * (above - below);
  };
  return clampMs(medianMs * Math.exp(SHIFT_OF.ttft(scatter, medianMs, readShift)));
}
