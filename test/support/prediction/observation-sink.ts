import { Registry } from 'prom-client';
import type { Store } from '../../../src/database/store.ts';
import type { AnsweredRow } from '../../../src/prediction/live-accuracy/answered-row.ts';
import { createObservationSink } from '../../../src/prediction/observations/observation-sink.ts';
import { createPredictor, type SwappablePredictor } from '../../../src/prediction/online/predictor.ts';
import type {
  DispatchedEvent,
  FinishedEvent,
  FirstTokenEvent,
  ObservationEvent,
  WholeObservation,
} from '../../../src/prediction/schema/observation-event.ts';
import { createSharingWorker } from '../../../src/prediction/sharing/sharing-worker.ts';
import { createLog, type Log } from '../../../src/telemetry/log.ts';
import { createStillWorld } from '../basics/still-world.ts';
import { observePool } from './observed-pool.ts';

const [observed] = observePool({ rows: 1 });
export const { input } = observed!;
export const dispatched: DispatchedEvent = { kind: 'dispatched', requestId: 'r1', targetModel: 'm', input, atMs: 1000 };
export const firstToken: FirstTokenEvent = { kind: 'first_token', requestId: 'r1', ttftMs: 120, atMs: 1120 };
export const finished: FinishedEvent = { kind: 'finished', requestId: 'r1', tpotMs: 20, outputTokens: 30, atMs: 1700 };
export const whole: WholeObservation = {
  kind: 'observation',
  requestId: '',
  targetModel: 'm',
  input,
  atMs: 1,
  ttftMs: 5,
  tpotMs: 6,
  outputTokens: 2,
};

export function openSink(
  store: Store,
  predictor: SwappablePredictor = createPredictor(),
  onObserved: (targetModel: string) => void = () => {},
  log: Log = createLog('silent'),
) {
  const drifted: string[] = [];
  const answered: AnsweredRow[] = [];
  const world = createStillWorld();
  const metrics = new Registry();
  const sharing = createSharingWorker({ store, world, log, metrics, predictor });
  const sink = createObservationSink({
    store,
    world,
    metrics,
    predictor,
    beforeObserve: (...observed) => sharing.beforeObserve(...observed),
    onAnswered: (row) => answered.push(row),
    onDrift: (model) => drifted.push(model),
    onObserved,
  });
  return { sink, sharing, predictor, drifted, answered, metrics, world };
}

/** Whole observations of model m. */
export const reportRows = (rows: ReturnType<typeof observePool>): ObservationEvent[] =>
  rows.map((row) => ({
    kind: 'observation',
    requestId: '',
    targetModel: 'm',
    input: row.input,
    atMs: row.atMs!,
    ttftMs: row.ttftMs,
    tpotMs: row.tpotMs,
    outputTokens: 0,
  }));
