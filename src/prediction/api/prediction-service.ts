/** Answers a decoded Predict call for gRPC and HTTP, and refuses unknown models. */
import { Failure } from '../../errors.ts';
import type { GrpcService } from '../../grpc/call/service.ts';
import { CallHistogram } from '../../telemetry/call-histogram.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { World } from '../../world.ts';
import { createPredictColumns, type PredictColumns, type PredictedColumns, type Predictor } from '../schema/columns.ts';
import { omitUnusableInputs } from './omit-unusable-inputs.ts';
import { MAX_INPUTS, type PredictSummary } from './predict-call.ts';
import { PredictRequestDecoder } from './predict-codec-request.ts';
import { PredictResponseEncoder } from './predict-codec-response.ts';
import { type JsonPredictResponse, readJsonRequest, toJsonResponse } from './predict-json.ts';

export interface PredictionServiceDependencies {
  readonly predictor: Predictor;
  /** Fills rows without a load with the load of their server. */
  readonly fillLoad?: ((columns: PredictColumns) => void) | undefined;
  /** For a target model without a version: `prior` answers with the prior, `reject` refuses. */
  readonly unknownModel: 'prior' | 'reject';
  readonly metrics: Metrics;
  readonly world: Pick<World, 'monotonicMs'>;
}

/** The second name is that of the gateway hermes-router (docs/how-to/connect.md), whose messages have the same fields and types. */
export const PREDICTION_SERVICE_NAMES = ['prediction.v1.PredictionService', 'hermes.prediction.v1.PredictionService'];

/** Answers `Predict` in each of its encodings with one handler. Synchronous: a call ends before the next begins. */
export interface PredictionService {
  /** The same service under each of its names. */
  readonly grpc: readonly GrpcService[];
  /** Takes the bytes of a PredictRequest, and returns those of a PredictResponse, valid until the next call. */
  answerBytes(request: Uint8Array): Uint8Array;
  /** Does the same in the JSON mapping of proto3. */
  answerJson(request: unknown): JsonPredictResponse;
}

export function createPredictionService(dependencies: PredictionServiceDependencies): PredictionService {
  const columns = createPredictColumns(MAX_INPUTS);
  const predicted = { ttftMs: new Float64Array(MAX_INPUTS), tpotMs: new Float64Array(MAX_INPUTS) };
  const decoder = new PredictRequestDecoder(columns);
  const encoder = new PredictResponseEncoder();
  const observeSince = createDurationObserver(dependencies);

  const answerBytes = (request: Uint8Array): Uint8Array => {
    const startedMs = dependencies.world.monotonicMs();
    const summary = answer(decoder.decode(request), { columns, predicted }, dependencies);
    const bytes = encoder.encode(summary, columns, predicted);
    observeSince(startedMs);
    return bytes;
  };
  const answerJson = (request: unknown): JsonPredictResponse => {
    const startedMs = dependencies.world.monotonicMs();
    const summary = answer(readJsonRequest(request, columns), { columns, predicted }, dependencies);
    const response = toJsonResponse(summary, columns, predicted);
    observeSince(startedMs);
    return response;
  };
  return {
    answerBytes,
    answerJson,
    grpc: PREDICTION_SERVICE_NAMES.map((name) => ({
      name,
      methods: [{ kind: 'unary', name: 'Predict', keepsNoBytes: true, handle: answerBytes }],
    })),
  };
}

interface CallColumns {
  readonly columns: PredictColumns;
  readonly predicted: PredictedColumns;
}

function answer(
  targetModel: string,
  call: CallColumns,
  { predictor, fillLoad, unknownModel }: PredictionServiceDependencies,
) {
  if (targetModel === '')
    throw new Failure('invalid', 'Cannot predict: target_model must not be empty', { field: 'target_model' });
  if (unknownModel === 'reject' && !predictor.hasModel(targetModel))
    throw new Failure('not_found', `Cannot predict: nothing was learned yet about target_model "${targetModel}"`);
  fillLoad?.(call.columns);
  const omittedInputs = omitUnusableInputs(call.columns);
  const modelVersion = predictor.predict(targetModel, call.columns, call.predicted);
  return { targetModel, modelVersion, omittedInputs } satisfies PredictSummary;
}

/** Observes `trivet_predict_duration_seconds` without labels, which would cost more time than the rest of the measurement. */
function createDurationObserver({ metrics, world }: PredictionServiceDependencies): (startedMs: number) => void {
  const seconds = new CallHistogram({
    name: 'trivet_predict_duration_seconds',
    help: 'Time to decode, answer and encode one Predict call, transport not included.',
    buckets: [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1],
    registers: [metrics],
  });
  return (startedMs) => seconds.count((world.monotonicMs() - startedMs) / 1000);
}
