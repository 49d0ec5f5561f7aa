/** Takes reports as the service does: stores them, and updates the server state, the live accuracy and the samples. */
import type { Store } from '../../src/database/store.ts';
import type { GrpcService } from '../../src/grpc/call/service.ts';
import { createObservationService } from '../../src/prediction/api/observation-service.ts';
import { createAccuracyWorker } from '../../src/prediction/live-accuracy/accuracy-worker.ts';
import { createObservationSink } from '../../src/prediction/observations/observation-sink.ts';
import { createRequestSweeper } from '../../src/prediction/observations/request-sweeper.ts';
import { createSampleKeeper } from '../../src/prediction/observations/sample-keeper.ts';
import type { SwappablePredictor } from '../../src/prediction/online/predictor.ts';
import { createSharingWorker } from '../../src/prediction/sharing/sharing-worker.ts';
import { withSteadyClock } from '../../src/steady-clock.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { realWorld } from '../../src/world.ts';

export interface ReportsDependencies {
  readonly store: Store;
  readonly predictor: SwappablePredictor;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** The parts that `createPredictionArea` builds, without training. */
export function openReports(dependencies: ReportsDependencies): GrpcService {
  const { predictor, metrics } = dependencies;
  const world = withSteadyClock(realWorld);
  const accuracy = createAccuracyWorker({ ...dependencies, world, isClockTrusted: world.isClockTrusted });
  const samples = createSampleKeeper({ ...dependencies, world });
  const sharing = createSharingWorker({ ...dependencies, world, predictor });
  const sweeper = createRequestSweeper({ ...dependencies, world });
  const sink = createObservationSink({
    ...dependencies,
    world,
    metrics,
    onAnswered: (row) => accuracy.observe(row),
    beforeObserve: (model, forecast, time) => sharing.beforeObserve(model, forecast, time),
    onDrift: () => {},
    onObserved: (model) => samples.countAdded(model, 1),
  });
  for (const worker of [sharing, accuracy, sweeper, samples]) worker.start();
  return createObservationService({ sink, world }).grpc;
}
