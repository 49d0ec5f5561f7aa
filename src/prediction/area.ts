/** Prediction: answers Predict over gRPC and HTTP from the promoted models, and keeps up with promotions. */
import type { Area } from '../area.ts';
import type { Config } from '../config/config.ts';
import type { Store } from '../database/store.ts';
import { type CallerRule, requireCaller } from '../grpc/require-caller.ts';
import type { VerifyToken } from '../identity.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { World } from '../world.ts';
import { createModelLoader } from './model-loader.ts';
import { createPredictRoutes } from './predict-routes.ts';
import { createPredictionService } from './prediction-service.ts';
import { createPredictor } from './predictor.ts';

export interface PredictionParts {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly config: Config['prediction'];
  readonly verifyToken: VerifyToken;
}

export interface PredictionArea extends Area {
  /** Loads the promoted models; call before the first request. */
  loadModels(): Promise<void>;
}

export function createPredictionArea(parts: PredictionParts): PredictionArea {
  const { store, world, log, metrics, config } = parts;
  const predictor = createPredictor();
  const loader = createModelLoader({ store, predictor, log });
  const service = createPredictionService({ predictor, unknownModel: config.unknownModel, metrics, world });
  const rule: CallerRule = { mode: config.auth, verifyToken: parts.verifyToken };
  return {
    routes: [{ path: '/prediction.v1.PredictionService', errors: 'rpc', routes: createPredictRoutes(service, rule) }],
    services: [requireCaller(rule)(service.grpc)],
    workers: [loader],
    loadModels: () => loader.load(),
  };
}
