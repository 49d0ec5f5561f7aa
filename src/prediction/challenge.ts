/** A new model must first be better than the served one, on the newest rows, which neither has seen. */
import type { Answers } from './evaluation/accuracy.ts';
import { answerRows } from './evaluation/answer-rows.ts';
import { createPriorModel, type LatencyModel } from './model.ts';
import { type ObservationTable, selectRows, TARGETS } from './observation-table.ts';
import { DEFAULT_TRAINING, type TrainParameters, trainModel } from './train-model.ts';

/** How two models did on the judged rows: mean absolute log error, over both targets. */
export interface Judgement {
  readonly judgedRows: number;
  readonly championError: number;
  readonly challengerError: number;
}

export interface Challenge extends Judgement {
  /** Learned from all rows; undefined when the challenger was not better. */
  readonly winner: LatencyModel | undefined;
}

const JUDGED_SHARE = 0.2;
const MAX_JUDGED_ROWS = 2000;

/** `table` is in the order of time. Without a champion, the prior is to be beaten. */
export function challengeChampion(table: ObservationTable, champion: LatencyModel = createPriorModel()): Challenge {
  const parameters = { ...DEFAULT_TRAINING, statistic: champion.statistic };
  const judgement = judgeChallenger(table, champion, parameters);
  return { ...judgement, winner: isBetter(judgement) ? trainModel('winner@1', table, parameters) : undefined };
}

/** Learns from all but the newest rows, and holds both models against these. */
export function judgeChallenger(
  table: ObservationTable,
  champion: LatencyModel,
  parameters: TrainParameters,
): Judgement {
  const judgedRows = Math.min(MAX_JUDGED_ROWS, Math.ceil(JUDGED_SHARE * table.count));
  const rows = Array.from({ length: table.count }, (_, row) => row);
  const judged = rows.slice(table.count - judgedRows);
  const challenger = trainModel('challenger@1', selectRows(table, rows.slice(0, -judgedRows)), parameters);
  return {
    judgedRows,
    championError: measureError(champion, table, judged),
    challengerError: measureError(challenger, table, judged),
  };
}

export function isBetter({ championError, challengerError }: Judgement): boolean {
  return challengerError < championError;
}

/** Each target counts alike, however many rows have it. */
function measureError(model: LatencyModel, table: ObservationTable, rows: readonly number[]): number {
  const answers: Answers = { ttft: [], tpot: [] };
  answerRows(model, table, rows, answers);
  const errors = TARGETS.filter((target) => answers[target].length > 0).map((target) => {
    const logErrors = answers[target].map(({ observedMs, predictedMs }) =>
      Math.abs(Math.log(observedMs / predictedMs)),
    );
    return logErrors.reduce((sum, error) => sum + error, 0) / logErrors.length;
  });
  return errors.length === 0 ? 0 : errors.reduce((sum, error) => sum + error, 0) / errors.length;
}
