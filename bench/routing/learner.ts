import type { LatencyModel } from '../../src/prediction/model/model.ts';
import type { Observation } from '../../src/prediction/schema/observation.ts';
import {
  appendObservation,
  createObservationTable,
  type ObservationTable,
} from '../../src/prediction/schema/observation-table.ts';
import { trainModel } from '../../src/prediction/training/train-model.ts';
import type { GatewayInput } from './gateway.ts';

export interface ObservedRequest extends Pick<Observation, 'ttftMs' | 'tpotMs'> {
  readonly input: GatewayInput;
  readonly atMs: number;
}

/** As the service does by default: first after 50 requests, then after every 1,000. */
const FIRST_ROWS = 50;
const REFIT_ROWS = 1000;

/** Trains again now and then from all rows that were added. Training takes no simulated time. */
export function createLearner(onLearned: (model: LatencyModel) => void) {
  const requests: ObservedRequest[] = [];
  let dueAt = FIRST_ROWS;
  return {
    add(request: ObservedRequest): void {
      requests.push(request);
      if (requests.length < dueAt) return;
      dueAt = requests.length + REFIT_ROWS;
      onLearned(trainModel('m@1', tabulate(requests)));
    },
  };
}

/** In the order of time. */
export function tabulate(requests: readonly ObservedRequest[]): ObservationTable {
  const table = createObservationTable();
  for (const { input, ...observed } of requests.toSorted((a, b) => a.atMs - b.atMs)) {
    const { server, ...metrics } = input;
    appendObservation(table, {
      targetModel: 'm',
      input: { ...metrics, podType: '', serverIp: server },
      ...observed,
    });
  }
  return table;
}
