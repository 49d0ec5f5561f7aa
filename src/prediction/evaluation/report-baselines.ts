/** Computes the errors of the baselines: the median of all rows, the prior, and the served version. */
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import {
  type ObservationTable,
  observedTimes,
  PREDICTION_TARGETS,
  type PredictionTarget,
} from '../schema/observation-table.ts';
import { type Accuracy, type Answer, type Answers, measureAccuracy } from './accuracy.ts';
import { answerRows } from './offline-answers.ts';

export interface Baselines {
  /** Predicts the median and 90th percentile of all rows for every request. They are computed from the test rows, which flatters them. */
  readonly median: Answers;
  /** The prior, with which a service answers for a model that it has learned nothing about. */
  readonly prior: Answers;
  /** The served version without the reports after its training. It may have been trained on the test rows. */
  readonly served?: Answers | undefined;
}

export function answerBaselines(table: ObservationTable, answers: Answers, served?: LatencyModel): Baselines {
  const constants = { ttft: findConstant(table, 'ttft'), tpot: findConstant(table, 'tpot') };
  return {
    median: {
      ttft: answers.ttft.map((one) => ({ ...one, ...constants.ttft })),
      tpot: answers.tpot.map((one) => ({ ...one, ...constants.tpot })),
    },
    prior: answerBy(createPriorModel(), table, answers),
    served: served && answerBy(served, table, answers),
  };
}

/** Returns the predictions of a baseline; a row that was tested several times is repeated. */
function answerBy(model: LatencyModel, table: ObservationTable, answers: Answers): Answers {
  const rows = [...new Set(PREDICTION_TARGETS.flatMap((target) => answers[target].map(({ row }) => row)))];
  const own: Answers = { ttft: [], tpot: [] };
  answerRows(model, table, rows, own);
  const ofTested = (target: PredictionTarget) => {
    const byRow = new Map(own[target].map((answer) => [answer.row, answer]));
    return answers[target].map(({ row }) => byRow.get(row)).filter((one) => one !== undefined);
  };
  return { ttft: ofTested('ttft'), tpot: ofTested('tpot') };
}

function findConstant(table: ObservationTable, target: PredictionTarget): Pick<Answer, 'predictedMs' | 'p90Ms'> {
  const times = observedTimes(table, target)
    .subarray(0, table.count)
    .filter((ms) => ms > 0)
    .sort();
  const at = (level: number) => times[Math.min(times.length - 1, Math.floor(level * times.length))] ?? Number.NaN;
  return { predictedMs: at(0.5), p90Ms: at(0.9) };
}

/** The errors of the model and of the baselines on the same rows. */
export interface Compared {
  readonly model: Accuracy;
  readonly median: Accuracy;
  readonly prior: Accuracy;
  readonly served: Accuracy | undefined;
}

/** Undefined when no row was tested. */
export function compareAccuracy(
  { answers, baselines }: { readonly answers: Answers; readonly baselines: Baselines },
  target: PredictionTarget,
  isChosen: (row: number) => boolean = () => true,
): Compared | undefined {
  const measure = (of: Answers) => measureAccuracy(of[target].filter(({ row }) => isChosen(row)));
  const [model, median, prior] = [measure(answers), measure(baselines.median), measure(baselines.prior)];
  const served = baselines.served && measure(baselines.served);
  return model && median && prior && { model, median, prior, served };
}
