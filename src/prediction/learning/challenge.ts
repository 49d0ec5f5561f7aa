/**
 * Decides whether a new model (challenger) is promoted: its error on the newest rows must be below that of the served one
 * (champion). The measure is `TestErrors`, and no margin is asked for.
 */
import type { Answers } from '../evaluation/accuracy.ts';
import { answerRows } from '../evaluation/offline-answers.ts';
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import { type ObservationTable, PREDICTION_TARGETS, selectRows } from '../schema/observation-table.ts';
import { DEFAULT_TRAINING, type TrainParameters, trainModel } from '../training/train-model.ts';

/** The errors of two models on the test rows: the mean absolute log error of each target, and the mean of the two. */
export interface TestErrors {
  /** Number of test rows. The record of a training has it under this name, so it cannot be renamed. */
  readonly judgedRows: number;
  readonly championError: number;
  readonly challengerError: number;
}

export interface Challenge extends TestErrors {
  /** Trained on all rows; undefined when the challenger was not better. */
  readonly winner: LatencyModel | undefined;
}

const TEST_SHARE = 0.2;
const MAX_TEST_ROWS = 2000;

/**
 * `table` is in the order of time. Without a champion, the challenger must beat the prior. `isUnseen` says which rows the champion
 * was not trained on: tested on its training rows, it would always win.
 */
export function challengeChampion(
  table: ObservationTable,
  champion: LatencyModel = createPriorModel(),
  isUnseen: IsUnseen = () => true,
): Challenge {
  const parameters = { ...DEFAULT_TRAINING, statistic: champion.statistic };
  const errors = testChallenger(table, champion, { ...parameters, isUnseen });
  return { ...errors, winner: isBetter(errors) ? trainModel('winner@1', table, parameters) : undefined };
}

type IsUnseen = (row: number) => boolean;

export interface TestParameters extends TrainParameters {
  /** Left out, the champion was trained on no row. */
  readonly isUnseen?: IsUnseen;
}

/**
 * Trains on all but the newest rows, and measures both models on these. Half of what the champion has not seen is trained on
 * (of an odd number, the smaller half): otherwise both models would have been trained on the same rows. Unseen rows that are
 * not among the newest, as those of an old log, test no model: they say nothing of what is asked now. With no others, nothing
 * is trained. A later training learns from them, and is tested on newer rows.
 */
export function testChallenger(
  table: ObservationTable,
  champion: LatencyModel,
  { isUnseen = () => true, ...parameters }: TestParameters,
): TestErrors {
  const rows = Array.from({ length: table.count }, (_, row) => row);
  const firstNewest = table.count - Math.ceil(TEST_SHARE * table.count);
  const unseen = rows.filter(isUnseen);
  const newest = unseen.filter((row) => row >= firstNewest);
  const testRows = newest.slice(-Math.min(MAX_TEST_ROWS, Math.ceil(unseen.length / 2)));
  if (testRows.length === 0) return { judgedRows: 0, championError: 0, challengerError: 0 };
  const tested = new Set(testRows);
  const trainingRows = rows.filter((row) => !tested.has(row));
  const challenger = trainModel('challenger@1', selectRows(table, trainingRows), parameters);
  return {
    judgedRows: testRows.length,
    championError: measureError(champion, table, testRows),
    challengerError: measureError(challenger, table, testRows),
  };
}

/** Whether the challenger is promoted. */
export function isBetter({ championError, challengerError }: TestErrors): boolean {
  return challengerError < championError;
}

/** The mean of |log(observed / predicted)|. Each target counts equally, however many rows have it. */
function measureError(model: LatencyModel, table: ObservationTable, rows: readonly number[]): number {
  const answers: Answers = { ttft: [], tpot: [] };
  answerRows(model, table, rows, answers);
  const errors = PREDICTION_TARGETS.filter((target) => answers[target].length > 0).map((target) => {
    const logErrors = answers[target].map(({ observedMs, predictedMs }) =>
      Math.abs(Math.log(observedMs / predictedMs)),
    );
    return logErrors.reduce((sum, error) => sum + error, 0) / logErrors.length;
  });
  return errors.length === 0 ? 0 : errors.reduce((sum, error) => sum + error, 0) / errors.length;
}
