/** Explains both predictions of one candidate. */
import { createPredictColumns, METRIC_COLUMNS, type PredictColumns } from '../schema/columns.ts';
import type { ObservedInput } from '../schema/observation-event.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import { explainPrediction, type PredictionExplanation } from './explain.ts';
import { findTimeModel, type LatencyModel } from './model.ts';

/** Columns with room for one row, which `fillInput` fills. */
export function createInputColumns(): PredictColumns {
  const columns = createPredictColumns(1);
  columns.count = 1;
  return columns;
}

export function fillInput(columns: PredictColumns, input: ObservedInput): void {
  columns.podTypes = [input.podType];
  for (const name of METRIC_COLUMNS) columns[name][0] = input[name];
  columns.source = Buffer.from(input.serverIp);
  columns.serverIpLength[0] = columns.source.length;
}

export type Explanations = Readonly<Record<PredictionTarget, PredictionExplanation>>;

/** Explains the one row of `columns`, on this server. */
export function explainInput(model: LatencyModel, columns: PredictColumns, serverIp: string): Explanations {
  const podType = columns.podTypes[0] ?? '';
  const [ttft, tpot] = PREDICTION_TARGETS.map((target) => {
    return explainPrediction(findTimeModel(model, podType, target), columns, { serverIp, podType });
  });
  return { ttft: ttft!, tpot: tpot! };
}
