/** Builds the prediction area: answers Predict from promoted models, takes reports, learns from them. */

import type { Area, OwnPort } from '../area.ts';
import type { Config } from '../config/config.ts';
import type { StoreOptions } from '../database/startup/open-store.ts';
import type { Store } from '../database/store.ts';
import { type CallerRule, requireCaller } from '../grpc/call/require-caller.ts';
import type { RequireScope } from '../http/scope-middleware.ts';
import type { VerifyToken } from '../identity.ts';
import type { NoticeSource } from '../notices/notice.ts';
import type { AuditChange } from '../operations/audit-change.ts';
import { mountOperations } from '../operations/operation-routes.ts';
import { withSteadyClock } from '../steady-clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { World } from '../world.ts';
import { createFileReader } from './administration/file-reader.ts';
import { implementModels } from './administration/implement-models.ts';
import { predictionDescriptions } from './api/api-descriptions.ts';
import { createObservationRoutes } from './api/observation-routes.ts';
import { createObservationService } from './api/observation-service.ts';
import { createPredictRoutes } from './api/predict-routes.ts';
import { createPredictionService, PREDICTION_SERVICE_NAMES } from './api/prediction-service.ts';
import { type AskCapacity, createCapacityAsker } from './capacity/ask-capacity.ts';
import { createCapacityAdmin, type FindCapacityPage } from './capacity/capacity-admin.ts';
import { createCapacityRoutes } from './capacity/capacity-routes.ts';
import { createHeadroomWorker, type HeadroomWorker } from './capacity/headroom-worker.ts';
import { createTrainer } from './learning/trainer-worker.ts';
import { registerAccuracyMetrics } from './live-accuracy/accuracy-metrics.ts';
import { createAccuracyWorker } from './live-accuracy/accuracy-worker.ts';
import { type LlmDInterface, openLlmDInterface } from './llm-d/open-llm-d.ts';
import { createDriftAlarms } from './observations/drift-alarms-worker.ts';
import { createDriftNotices } from './observations/drift-notices.ts';
import { createObservationSink, type LearningSink } from './observations/observation-sink.ts';
import { createRequestSweeper } from './observations/request-sweeper.ts';
import { createSampleKeeper } from './observations/sample-keeper.ts';
import { createPredictor, type SwappablePredictor } from './online/predictor.ts';
import { type ConsoleModels, createConsoleModels } from './registry/console-models.ts';
import type { ConsoleModelsDependencies } from './registry/list-models.ts';
import { createModelLoader } from './registry/model-loader.ts';
import type { ScrapedServerView } from './scraper/scraped-loads.ts';
import { createScraper, type Scraper } from './scraper/scraper.ts';
import { createSharingWorker } from './sharing/sharing-worker.ts';
import { createSpanQueue } from './traces/learn-from-spans.ts';
import { createTraceRoutes } from './traces/trace-routes.ts';

export interface PredictionDependencies {
  readonly store: Store;
  /** The location of that store, for the process that trains models. */
  readonly storePlace: Pick<StoreOptions, 'dataDir' | 'databaseUrl'>;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly config: Config['prediction'];
  readonly verifyToken: VerifyToken;
  readonly requireScope: RequireScope;
  readonly auditChange: AuditChange;
}

interface PredictionAdmin extends ConsoleModels {
  /** Undefined when no servers are scraped. */
  readonly listScrapedServers: () => readonly ScrapedServerView[] | undefined;
  readonly findCapacity: FindCapacityPage;
}

export interface PredictionArea extends Area {
  /** Models and their accuracy, for pages that show and promote them. */
  readonly admin: PredictionAdmin;
  /** Creates notices that a model drifts; `pagesUrl` is the base URL of the pages. */
  readonly createNotices: (pagesUrl: string) => NoticeSource;
  /** Loads the promoted models. Call before the first request. */
  loadModels(): Promise<void>;
}

export function createPredictionArea(dependencies: PredictionDependencies): PredictionArea {
  const { store, world, log, metrics, config, auditChange } = dependencies;
  const predictor = createPredictor(world);
  const loader = createModelLoader({ store, world, predictor, log, metrics });
  const scraper = openScraper(dependencies);
  const { sharing, trainer, workers, sink: plainSink } = createFeedback(dependencies, predictor);
  // Reports of a gateway may lack the load of the server; rows of traces and of llm-d always have it.
  const filledSink = scraper?.fillReports(plainSink) ?? plainSink;
  const headroom = openHeadroom(dependencies, predictor, scraper);
  const observations = createObservationService({ sink: filledSink, world });
  const { unknownModel, tracesModel } = config;
  const service = createPredictionService({ predictor, fillLoad: scraper?.fillLoad, unknownModel, metrics, world });
  const rule: CallerRule = { mode: config.auth, verifyToken: dependencies.verifyToken };
  const askCapacity = createCapacityAsker(dependencies.storePlace);
  const spans = openSpanQueue(dependencies, plainSink);
  const objective = { type: config.llmDObjective, quantile: Number(config.llmDQuantile) };
  const llmD = openLlmDInterface({ ...dependencies, rule, predictor, unknownModel, sink: plainSink, objective });
  return {
    apiDescriptions: predictionDescriptions,
    admin: createPredictionAdmin({ ...dependencies, predictor }, scraper, askCapacity),
    createNotices: (pagesUrl) => createDriftNotices(dependencies.store, pagesUrl),
    routes: [
      ...PREDICTION_SERVICE_NAMES.map(
        (name) => ({ path: `/${name}`, errors: 'rpc', routes: createPredictRoutes(service, rule) }) as const,
      ),
      {
        path: '/observation.v1.ObservationService',
        errors: 'rpc',
        routes: createObservationRoutes(observations, rule),
      },
      {
        path: '/prediction',
        errors: 'problem',
        routes: createCapacityRoutes({ rule, ask: askCapacity }),
      },
      { path: '/v1', errors: 'otlp', routes: createTraceRoutes({ rule, queue: spans, model: tracesModel }) },
      llmD.mount,
      ...mountOperations(
        implementModels({ store, world, auditChange, reader: createFileReader() }),
        dependencies.requireScope,
      ),
    ],
    ownPorts: listOwnPorts(config, llmD),
    services: [...service.grpc.map(requireCaller(rule, 'predict')), requireCaller(rule, 'observe')(observations.grpc)],
    workers: [
      loader,
      ...workers,
      llmD.worker,
      ...[scraper?.worker, headroom, spans].filter((one) => one !== undefined),
      ...(config.learning ? [trainer] : []),
    ],
    async loadModels() {
      await loader.load();
      await sharing.restore();
      await scraper?.readList();
      await llmD.load();
    },
  };
}

/** Builds the sink for reports, from which they reach the live state, the samples and the training. */
function createFeedback(dependencies: PredictionDependencies, predictor: SwappablePredictor) {
  const { store, world, log, metrics, config } = dependencies;
  const steady = withSteadyClock(world);
  const accuracy = createAccuracyWorker({ store, world, log, metrics, isClockTrusted: steady.isClockTrusted });
  registerAccuracyMetrics({ store, metrics, world });
  const samples = createSampleKeeper({ store, world: steady, log, metrics });
  const trainer = createTrainer({
    ...config,
    store,
    place: dependencies.storePlace,
    world,
    log,
    metrics,
    onTrained: (model) => samples.thin(model),
  });
  const alarms = createDriftAlarms({ store, world: steady, log, metrics });
  const sharing = createSharingWorker({ store, world, log, metrics, predictor });
  const sink = createObservationSink({
    store,
    world,
    metrics,
    predictor,
    onAnswered: (row) => accuracy.observe(row),
    beforeObserve: (model, forecast, time) => sharing.beforeObserve(model, forecast, time),
    onDrift(model, alarm) {
      trainer.requestTraining(model);
      alarms.record(model, alarm);
    },
    onObserved(model) {
      samples.countAdded(model, 1);
      trainer.countObserved(model);
    },
  });
  const sweeper = createRequestSweeper({ store, world: steady, log, metrics });
  return { sharing, trainer, sink, workers: [sharing, accuracy, sweeper, samples, alarms] };
}

/** Returns undefined unless the capacity of the KV cache is configured, which is needed to reconstruct the load of spans. */
function openSpanQueue({ store, world, log, metrics, config }: PredictionDependencies, sink: LearningSink) {
  const { tracesKvCapacityTokens: kvCapacityTokens, tracesHoldSeconds } = config;
  if (kvCapacityTokens === undefined) return undefined;
  return createSpanQueue({ store, world, log, metrics, sink, kvCapacityTokens, holdMs: tracesHoldSeconds * 1000 });
}

function createPredictionAdmin(
  dependencies: ConsoleModelsDependencies,
  scraper: Scraper | undefined,
  ask: AskCapacity,
): PredictionAdmin {
  const { world } = dependencies;
  const readUnderWay = (server: string) => scraper?.loads.readUnderWay(server, world.monotonicMs());
  return {
    ...createConsoleModels(dependencies),
    listScrapedServers: () => scraper?.loads.listServers(world.monotonicMs()),
    findCapacity: createCapacityAdmin({ world, ask, readUnderWay }),
  };
}

/** Returns undefined unless a latency limit for the headroom is configured. */
function openHeadroom(
  { store, world, log, metrics, config }: PredictionDependencies,
  predictor: SwappablePredictor,
  scraper: Scraper | undefined,
): HeadroomWorker | undefined {
  const {
    headroomTtftMs: ttftMs,
    headroomTpotMs: tpotMs,
    headroomPercent,
    headroomOutputTokens: outputTokens,
  } = config;
  if (ttftMs === undefined && tpotMs === undefined) return undefined;
  return createHeadroomWorker({
    store,
    world,
    log,
    metrics,
    limits: { ttftMs, tpotMs, quantile: headroomPercent / 100 },
    outputTokens,
    listModels: () =>
      predictor.list().map(({ targetModel }) => ({ targetModel, model: predictor.live(targetModel).model })),
    readUnderWay: (server) => scraper?.loads.readUnderWay(server, world.monotonicMs()),
  });
}

/** Returns undefined unless servers are listed; without a list, scraping takes no resources. */
function openScraper({ config, world, log, metrics }: PredictionDependencies): Scraper | undefined {
  if (config.scrape === undefined) return undefined;
  const { scrape: source, scrapeIntervalMs: intervalMs, scrapeTimeoutMs: timeoutMs, scrapeStaleMs } = config;
  return createScraper({ source, intervalMs, timeoutMs, staleAfterMs: scrapeStaleMs, world, log, metrics });
}

function listOwnPorts(
  { llmDPort: port, llmDModel: model }: PredictionDependencies['config'],
  { endpoints }: LlmDInterface,
): OwnPort[] {
  if (port === undefined || model === undefined) return [];
  return [{ name: 'llm-d', variable: 'LLM_D_PORT', port, errors: 'detail', endpoints: endpoints.ofModel(model) }];
}
