/** Predicts the TTFT of a request at a server, and by the residuals of the model the share of such requests within a limit. */
import { type Buckets, type Calibration, calibrate, describeBuckets, LEVELS, SHIFT_OF } from '../model/calibration.ts';
import { findTimeModel, type LatencyModel } from '../model/model.ts';
import { createLiveModel } from '../online/live-model.ts';
import { createPredictColumns } from '../schema/columns.ts';
import type { Observation } from '../schema/observation.ts';
import { LOAD_FIELDS, type LoadMetrics } from './load-curve.ts';

export interface ServiceRequest {
  readonly inputTokenLength: number;
  readonly prefixCacheScore: number;
}

export interface ServiceModel {
  /** Returns the median TTFT of a request that meets this load. */
  predictTtft(server: string, request: ServiceRequest & LoadMetrics): number;
  /** Of the requests with this predicted median at a server, returns the share whose TTFT is at most `limitMs`. */
  shareWithin(server: string, medianMs: number, limitMs: number): number;
}

/** For a model without residuals, they are measured on this many samples of a server, evenly spaced among all. */
const MEASURED_SAMPLES = 500;

/** A modelled server and its samples. */
export interface SampledServer {
  readonly name: string;
  readonly samples: readonly Observation[];
}

/** Imported trees come without residuals, so these are measured on samples, in steps of one server each. */
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
    shareWithin: (server, medianMs, limitMs) => findShare(measured.get(server) ?? trained, medianMs, limitMs),
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
 * Returns the share of times within a limit. Residuals are logarithms, known at some quantile levels and interpolated linearly
 * between them. Below the first level the share is 0; from the last on, it is 1. Between buckets, residuals are smoothed as in
 * answers, so that the share never rises with the median.
 */
function findShare(scatter: Scatter, medianMs: number, limitMs: number): number {
  const limit = Math.log(limitMs / medianMs);
  const residuals = LEVELS.map((_, level) =>
    SHIFT_OF.ttft(scatter, medianMs, (bucket) => scatter.quantiles[bucket * LEVELS.length + level]!),
  );
  const above = residuals.findIndex((residual) => residual > limit);
  if (above === -1) return 1;
  if (above === 0) return 0;
  const [low, high] = [residuals[above - 1]!, residuals[above]!];
  return LEVELS[above - 1]! + ((limit - low) / (high - low)) * (LEVELS[above]! - LEVELS[above - 1]!);
}
