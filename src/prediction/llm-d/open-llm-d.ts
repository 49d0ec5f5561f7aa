/** Assembles the parts of llm-d's interface. */
import { Histogram } from 'prom-client';
import { checkStoreReady } from '../../database/startup/check-ready.ts';
import type { Store } from '../../database/store.ts';
import type { CallerRule } from '../../grpc/call/require-caller.ts';
import type { RouteMount } from '../../http/mount.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Worker } from '../../workers/worker.ts';
import type { World } from '../../world.ts';
import type { LearningSink } from '../observations/observation-sink.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import { createRowAnswerer } from './answer-rows.ts';
import { createLlmDEndpoints, type LlmDEndpoints } from './llm-d-endpoints.ts';
import { describeLlmD } from './llm-d-openapi.ts';
import { createMeasuredTimes } from './measured-times.ts';
import { createReadinessReader } from './model-readiness.ts';
import type { Objective } from './prediction-answer.ts';
import { createTrainingIntake } from './training-intake.ts';

export interface LlmDInterfaceDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly rule: CallerRule;
  readonly predictor: SwappablePredictor;
  readonly unknownModel: 'prior' | 'reject';
  readonly sink: Pick<LearningSink, 'learn'>;
  readonly objective: Objective;
}

export interface LlmDInterface {
  readonly mount: RouteMount;
  readonly endpoints: LlmDEndpoints;
  readonly worker: Worker;
  /** Call before the first request. */
  load(): Promise<void>;
}

export function openLlmDInterface(dependencies: LlmDInterfaceDependencies): LlmDInterface {
  const { store, world, predictor, sink } = dependencies;
  const measuredTimes = createMeasuredTimes(dependencies);
  const endpoints = createLlmDEndpoints({
    ...dependencies,
    answerRows: createRowAnswerer(dependencies),
    takeTrainingRows: createTrainingIntake({ store, world, sink, measuredTimes }),
    measuredTimes,
    readReadiness: createReadinessReader({ predictor, unknownModel: dependencies.unknownModel, world }),
    observeSeconds: createDurationObserver(dependencies.metrics),
    checkReady: () => checkStoreReady(store),
  });
  return {
    mount: { path: '/llm-d', errors: 'detail', routes: describeLlmD(), endpoints: endpoints.byModel },
    endpoints,
    worker: measuredTimes,
    load: () => measuredTimes.load(),
  };
}

/** A separate series, because a call may have 10,000 rows and waits between its slices. */
function createDurationObserver(metrics: Metrics): (seconds: number) => void {
  const seconds = new Histogram({
    name: 'trivet_llm_d_predict_duration_seconds',
    help: 'Time to answer one predict call of the llm-d interface, without reading its body; calls between its turns count.',
    buckets: [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
    registers: [metrics],
  });
  return (value) => seconds.observe(value);
}
