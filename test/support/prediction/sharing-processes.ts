/** Runs the learning of several processes on one database. The test calls each step, so the result does not depend on time or chance. */
import type { Store } from '../../../src/database/store.ts';
import { createPredictor, type SwappablePredictor } from '../../../src/prediction/online/predictor.ts';
import { createPredictColumns, METRIC_COLUMNS } from '../../../src/prediction/schema/columns.ts';
import type { Observation } from '../../../src/prediction/schema/observation.ts';
import type { ObservedInput } from '../../../src/prediction/schema/observation-event.ts';
import { createSharedLearning, type SharedLearning } from '../../../src/prediction/sharing/shared-learning.ts';
import type { World } from '../../../src/world.ts';
import { createStillWorld } from '../basics/still-world.ts';

export interface SharingProcess {
  readonly predictor: SwappablePredictor;
  readonly learning: SharedLearning;
  /** Forecasts as at the dispatch; what is returned learns from the times once they are known. */
  dispatch(observation: Observation): () => void;
  /** Forecasts each, and learns from its times. */
  observe(observations: readonly Observation[]): void;
  applyNewRows(): Promise<void>;
  /** Appends what was observed, and takes up the log. */
  share(): Promise<void>;
  /** Median and p90 of both targets. */
  predict(input: ObservedInput): number[];
}

export function openSharingProcess(store: Store, world: World = createStillWorld()): SharingProcess {
  const predictor = createPredictor(world);
  const learning = createSharedLearning({ store, world, predictor });
  const applyNewRows = async (): Promise<void> => {
    for await (const _ of learning.applyNewRows());
  };
  const dispatch = ({ targetModel, input, ttftMs, tpotMs, outputTokens }: Observation) => {
    const live = predictor.live(targetModel);
    const forecast = live.forecast(fillColumns(input), input.podType, Buffer.from(input.serverIp));
    return () => {
      for (const [target, observedMs] of [['ttft', ttftMs] as const, ['tpot', tpotMs] as const]) {
        if (observedMs === undefined) continue;
        learning.beforeObserve(targetModel, forecast, { target, outputTokens });
        live.observe(forecast, target, { observedMs, outputTokens });
      }
    };
  };
  return {
    predictor,
    learning,
    applyNewRows,
    dispatch,
    observe(observations) {
      for (const observation of observations) dispatch(observation)();
    },
    async share() {
      await learning.append();
      await applyNewRows();
    },
    predict(input) {
      const columns = fillColumns(input);
      columns.podTypes = [input.podType];
      columns.source = Buffer.from(input.serverIp);
      columns.serverIpLength[0] = columns.source.length;
      const { predicted } = predictor.predictBatch('m', columns, ['p50', 'p90']);
      return predicted.flatMap(({ ttftMs, tpotMs }) => [ttftMs[0]!, tpotMs[0]!]);
    },
  };
}

function fillColumns(input: ObservedInput) {
  const columns = createPredictColumns(1);
  columns.count = 1;
  for (const name of METRIC_COLUMNS) columns[name][0] = input[name];
  return columns;
}
