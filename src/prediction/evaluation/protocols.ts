/**
 * Runs an evaluation by its protocol: random, time, prequential, stale metrics, or leaving out loads, servers or runs. No model is
 * trained on its test rows or, where order matters, on later rows. A TPOT is known at the end of its answer; without an end and a
 * length, after 200 tokens (`report-times.ts`).
 */
import { Failure } from '../../errors.ts';
import { createLiveModel } from '../online/live-model.ts';
import { hasTimes, listRows, type ObservationTable, selectRows } from '../schema/observation-table.ts';
import { type TrainParameters, trainModel } from '../training/train-model.ts';
import type { Answers } from './accuracy.ts';
import { FOLDS_OF, leaveRunsOut, splitInTime } from './folds.ts';
import { answerRows } from './offline-answers.ts';
import { answerPrequentially, createLiveAnswerer, selectKnownBy } from './prequential.ts';
import { createKnownAt, type Reporting, retellHistory } from './report-times.ts';
import { type Age, ageMetrics } from './stale-metrics.ts';

export const PROTOCOLS = [
  'random',
  'time',
  'prequential',
  'leave-load-out',
  'leave-server-out',
  'leave-run-out',
  'stale-metrics',
] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export interface EvaluateOptions {
  readonly parameters: TrainParameters;
  readonly onProgress: (text: string) => void;
  /** The runs that `leave-run-out` tests; each in turn when undefined. */
  readonly holdOut?: readonly string[] | undefined;
  /** The age of the metrics that `stale-metrics` predicts from; by default a second, or ten rows if rows have no times. */
  readonly age?: Age | undefined;
  /** Delay, batching and loss of reports; when undefined, all times are reported at once. */
  readonly reporting?: Reporting | undefined;
}

const MIN_ROWS = 20;

export function evaluate(protocol: Protocol, asReported: ObservationTable, options: EvaluateOptions): Answers {
  const table = options.reporting === undefined ? asReported : retellHistory(asReported, options.reporting);
  if (table.count < MIN_ROWS)
    throw new Failure('invalid', `Cannot evaluate: at least ${MIN_ROWS} rows are needed, got ${table.count}`);
  const answers: Answers = { ttft: [], tpot: [] };
  if (protocol === 'prequential') {
    answerPrequentially(table, listRows(table), { ...options, answers });
    return answers;
  }
  if (protocol === 'time') {
    answerInTime(table, table, options, answers);
    return answers;
  }
  if (protocol === 'stale-metrics') {
    answerInTime(table, ageMetrics(table, listRows(table), chooseAge(table, options.age)), options, answers);
    return answers;
  }
  if (protocol === 'leave-run-out') {
    answerHeldOutRuns(table, options, answers);
    return answers;
  }
  const folds = FOLDS_OF[protocol](table);
  for (const [i, { train, test }] of folds.entries()) {
    options.onProgress(`${protocol}: part ${i + 1} of ${folds.length}`);
    const model = trainModel('evaluated@1', selectRows(table, train), options.parameters);
    answerRows(model, table, test, answers);
  }
  return answers;
}

/**
 * Trains the trees on the first 70 % of each run. In the rest, each observed time adjusts the predictions after it, as in
 * service. A source without runs is one run. `asSeen` has the metrics from which the last 30 % are predicted.
 */
function answerInTime(
  table: ObservationTable,
  asSeen: ObservationTable,
  { parameters, onProgress, reporting }: EvaluateOptions,
  answers: Answers,
): void {
  onProgress('learning from the first 70 %');
  const { train, test, cutMsOfRun } = splitInTime(table);
  const knownAt = createKnownAt(table, reporting);
  const learned = selectKnownBy(table, train, { knownAt, nowMsOfRun: cutMsOfRun });
  const live = createLiveModel(trainModel('evaluated@1', learned, parameters));
  createLiveAnswerer(live, asSeen, { answers, knownAt })(test);
}

const TYPICAL_AGE_MS = 1000;
const TYPICAL_AGE_ROWS = 10;

function chooseAge(table: ObservationTable, age: Age | undefined): Age {
  const isTimed = hasTimes(table);
  if (age === undefined) return isTimed ? { ms: TYPICAL_AGE_MS } : { rows: TYPICAL_AGE_ROWS };
  if ('ms' in age && !isTimed)
    throw new Failure('invalid', 'Cannot use an age in milliseconds: not all rows have a time; give the age in rows');
  return age;
}

/** Tests in the order of time. Only earlier times of the test runs adjust predictions, as in a service that is new to them. */
function answerHeldOutRuns(table: ObservationTable, options: EvaluateOptions, answers: Answers): void {
  const folds = leaveRunsOut(table, options.holdOut);
  const inTime = listRows(table);
  for (const [i, { train, test }] of folds.entries()) {
    options.onProgress(`leave-run-out: part ${i + 1} of ${folds.length}`);
    const testRows = new Set(test);
    const live = createLiveModel(trainModel('evaluated@1', selectRows(table, train), options.parameters));
    createLiveAnswerer(live, table, { answers, knownAt: createKnownAt(table, options.reporting) })(
      inTime.filter((row) => testRows.has(row)),
    );
  }
}
