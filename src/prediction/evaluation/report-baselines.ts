/** What the errors of a model stand beside: answers that need no learning. */
import { createPriorModel } from '../model/model.ts';
import {
  type ObservationTable,
  observedTimes,
  PREDICTION_TARGETS,
  type PredictionTarget,
} from '../schema/observation-table.ts';
import { type Accuracy, type Answer, type Answers, measureAccuracy } from './accuracy.ts';
import { answerRows } from './offline-answers.ts';

export interface Baselines {
  /** The median of all rows for every request, and their 90th percentile. It has seen the judged rows, which flatters it. */
  readonly median: Answers;
  /** What a service answers for a model that it has learned nothing of. */
  readonly prior: Answers;
}

export function answerBaselines(table: ObservationTable, answers: Answers): Baselines {
  const prior = answerByPrior(table, answers);
  const of = (target: PredictionTarget, answer: (row: Answer) => Answer | undefined) =>
    answers[target].map(answer).filter((one) => one !== undefined);
  const constants = { ttft: findConstant(table, 'ttft'), tpot: findConstant(table, 'tpot') };
  return {
    median: {
      ttft: of('ttft', (one) => ({ ...one, ...constants.ttft })),
      tpot: of('tpot', (one) => ({ ...one, ...constants.tpot })),
    },
    prior: { ttft: of('ttft', ({ row }) => prior.ttft.get(row)), tpot: of('tpot', ({ row }) => prior.tpot.get(row)) },
  };
}

function answerByPrior(table: ObservationTable, answers: Answers): Record<PredictionTarget, Map<number, Answer>> {
  const rows = [...new Set(PREDICTION_TARGETS.flatMap((target) => answers[target].map(({ row }) => row)))];
  const own: Answers = { ttft: [], tpot: [] };
  answerRows(createPriorModel(), table, rows, own);
  const byRow = (target: PredictionTarget) => new Map(own[target].map((answer) => [answer.row, answer]));
  return { ttft: byRow('ttft'), tpot: byRow('tpot') };
}

function findConstant(table: ObservationTable, target: PredictionTarget): Pick<Answer, 'predictedMs' | 'p90Ms'> {
  const times = observedTimes(table, target)
    .subarray(0, table.count)
    .filter((ms) => ms > 0)
    .sort();
  const at = (level: number) => times[Math.min(times.length - 1, Math.floor(level * times.length))] ?? Number.NaN;
  return { predictedMs: at(0.5), p90Ms: at(0.9) };
}

/** The errors of the same rows, by the model and by what it stands beside. */
export interface Compared {
  readonly model: Accuracy;
  readonly median: Accuracy;
  readonly prior: Accuracy;
}

/** Undefined when no row was judged. */
export function compareAccuracy(
  { answers, baselines }: { readonly answers: Answers; readonly baselines: Baselines },
  target: PredictionTarget,
  isChosen: (row: number) => boolean = () => true,
): Compared | undefined {
  const measure = (of: Answers) => measureAccuracy(of[target].filter(({ row }) => isChosen(row)));
  const [model, median, prior] = [measure(answers), measure(baselines.median), measure(baselines.prior)];
  return model && median && prior && { model, median, prior };
}
