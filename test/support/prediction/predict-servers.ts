import { after, before } from 'node:test';
import { openGrpcServer } from '../../../src/grpc/listener/server.ts';
import { createHttpApp } from '../../../src/http/http-app.ts';
import { listenHttp } from '../../../src/http/http-server.ts';
import { createPredictRoutes } from '../../../src/prediction/api/predict-routes.ts';
import { createPredictionService } from '../../../src/prediction/api/prediction-service.ts';
import type { Predictor } from '../../../src/prediction/schema/columns.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics.ts';
import { realWorld } from '../../../src/world.ts';
import { connectRaw, type RawClient } from '../grpc/grpc-client.ts';

export const PATH = '/prediction.v1.PredictionService/Predict';

export interface PredictAnswer {
  outputs: { inputId: number; serverIp: string; predictedTtftMillis: number; predictedTpotMillis: number }[];
  metadata: { targetModel: string; modelVersion: string; omittedInputs: number };
}

/** Answers with numbers that identify the row. */
const predictor: Predictor = {
  hasModel: (targetModel) => targetModel === 'known',
  predict: (targetModel, columns, predicted) => {
    for (let row = 0; row < columns.count; row++) {
      predicted.ttftMs[row] = columns.inputTokenLength[row]! + columns.kvCacheUsage[row]!;
      predicted.tpotMs[row] = columns.podTypes[columns.podType[row]!]!.length;
    }
    return targetModel === 'known' ? 'known@3' : 'prior@1';
  },
};

const log = createLog('silent');

interface PredictServers extends AsyncDisposable {
  readonly client: RawClient;
  /** The client of a service that rejects unknown models. */
  readonly strictClient: RawClient;
  readonly metrics: Metrics;
  readonly httpUrl: string;
}

/** Starts servers for the tests of the file that calls this, and returns a function that returns them. */
export function usePredictServers(): () => PredictServers {
  let servers: PredictServers;
  before(async () => {
    servers = await startPredictServers();
  });
  after(() => servers[Symbol.asyncDispose]());
  return () => servers;
}

/** Predict over gRPC and HTTP; under `/guarded` callers need a token. */
async function startPredictServers(): Promise<PredictServers> {
  const metrics = createMetrics();
  const service = createPredictionService({ predictor, unknownModel: 'prior', metrics, world: realWorld });
  const strictMetrics = createMetrics();
  const unknown = { unknownModel: 'reject', metrics: strictMetrics } as const;
  const strict = createPredictionService({ predictor, ...unknown, world: realWorld });
  const common = { host: '127.0.0.1', port: 0, maxMessageBytes: 4_194_304, log, world: realWorld };
  const grpc = await openGrpcServer({ ...common, services: service.grpc, metrics });
  const strictGrpc = await openGrpcServer({ ...common, services: strict.grpc, metrics: strictMetrics });
  const client = connectRaw(`127.0.0.1:${grpc.port}`);
  const strictClient = connectRaw(`127.0.0.1:${strictGrpc.port}`);
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  const verifyToken = () => Promise.resolve(undefined);
  const mounts = (['auto', 'on'] as const).map((mode) => ({
    path: mode === 'auto' ? '/prediction.v1.PredictionService' : '/guarded',
    errors: 'rpc' as const,
    routes: createPredictRoutes(service, { mode, verifyToken }),
  }));
  http.serve(createHttpApp({ mounts, log, metrics, world: realWorld, maxBodyBytes: 1e6, checkReady: async () => {} }));
  return {
    client,
    strictClient,
    metrics,
    httpUrl: http.url,
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      strictClient[Symbol.dispose]();
      await Promise.all([grpc.drain(1000), strictGrpc.drain(1000), http.drain(1000)]);
    },
  };
}
