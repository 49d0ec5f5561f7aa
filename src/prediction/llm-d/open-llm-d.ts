/** The parts of this wire, put together. */
import { checkStoreReady } from '../../database/startup/check-ready.ts';
import type { Store } from '../../database/store.ts';
import type { CallerRule } from '../../grpc/call/require-caller.ts';
import type { RouteMount } from '../../http/mount.ts';
import type { Log } from '../../telemetry/log.ts';
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

export interface LlmDWireDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly rule: CallerRule;
  readonly predictor: SwappablePredictor;
  readonly unknownModel: 'prior' | 'reject';
  readonly sink: Pick<LearningSink, 'learn'>;
  readonly objective: Objective;
}

export interface LlmDWire {
  readonly mount: RouteMount;
  readonly endpoints: LlmDEndpoints;
  readonly worker: Worker;
  /** Call before the first request. */
  load(): Promise<void>;
}

export function openLlmDWire(dependencies: LlmDWireDependencies): LlmDWire {
  const { store, world, predictor, sink } = dependencies;
  const measuredTimes = createMeasuredTimes(dependencies);
  const endpoints = createLlmDEndpoints({
    ...dependencies,
    answerRows: createRowAnswerer(dependencies),
    takeTrainingRows: createTrainingIntake({ store, world, sink, measuredTimes }),
    measuredTimes,
    readReadiness: createReadinessReader({ predictor, unknownModel: dependencies.unknownModel, world }),
    checkReady: () => checkStoreReady(store),
  });
  return {
    mount: { path: '/llm-d', errors: 'detail', routes: describeLlmD(), endpoints: endpoints.byModel },
    endpoints,
    worker: measuredTimes,
    load: () => measuredTimes.load(),
  };
}
