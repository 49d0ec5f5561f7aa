/**
 * Decides whether a new model (challenger) is promoted: its error on the newest rows must be below that of the served one
 * (champion). The measure is `TestErrors`, and no margin is required.
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
/** With fewer test rows, the mean error is mostly chance. Of fewer than a hundred rows in all, a fifth is enough. */
const MIN_TEST_ROWS = 20;

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
  /** If absent, the champion was trained on none of the rows. */
  readonly isUnseen?: IsUnseen;
}

/** Trains on all but the test rows, and measures both models on these. Without test rows, nothing is trained. */
export function testChallenger(
  table: ObservationTable,
  champion: LatencyModel,
  { isUnseen = () => true, ...parameters }: TestParameters,
): TestErrors {
  const rows = Array.from({ length: table.count }, (_, row) => row);
  const testRows = listTestRows(rows, isUnseen);
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

/**
 * Returns the newest of the recent rows. At least the older half of the recent rows (of an odd number, the smaller half) is
 * trained on: otherwise both models would have been trained on the same rows. Rows of an old log are not recent, so they do not
 * decide which model is served. If too few rows are left for a test, a later training learns from all of them, and is tested on
 * newer rows.
 */
function listTestRows(rows: readonly number[], isUnseen: IsUnseen): readonly number[] {
  const fifth = Math.ceil(TEST_SHARE * rows.length);
  const recent = listRecent(rows, isUnseen);
  const testRows = recent.slice(-Math.min(MAX_TEST_ROWS, fifth, Math.ceil(recent.length / 2)));
  return testRows.length < Math.min(MIN_TEST_ROWS, fifth) ? [] : testRows;
}

/**
 * The unseen rows that are not older than the newest fifth of the seen ones. Reports come late, so some unseen rows are older
 * than the newest seen one.
 */
function listRecent(rows: readonly number[], isUnseen: IsUnseen): readonly number[] {
  const seen = rows.filter((row) => !isUnseen(row));
  const firstRecent = seen.at(-Math.ceil(TEST_SHARE * seen.length)) ?? 0;
  return rows.filter((row) => row >= firstRecent && isUnseen(row));
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
