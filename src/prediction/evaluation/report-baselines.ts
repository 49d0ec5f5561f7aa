/** Computes the errors of answers that need no learning, as baselines. */
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
  /** The median of all rows for every request, and their 90th percentile. It is computed from the test rows, which flatters it. */
  readonly median: Answers;
  /** A service answers this for a model that it has learned nothing of. */
  readonly prior: Answers;
  /** The served version answers this by itself, without the reports after its training. It may have been trained on the test rows. */
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

/** The answers of a baseline, repeated for a row as often as that row was tested. */
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

/** The errors of the same rows by the model and by the baselines that it is compared with. */
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
