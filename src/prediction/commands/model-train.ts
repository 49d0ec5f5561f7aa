/** Runs `trivet model train`: trains a version on files of observations, stores it and serves it. */
import { Command, Option } from 'commander';
import { openCliStore } from '../../command-line/open-cli-store.ts';
import { createProgress, print, printJson } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import { realWorld } from '../../world.ts';
import type { Format } from '../formats/read-observations.ts';
import type { ReadTable, Refusals } from '../formats/read-table.ts';
import { isBetter, type TestErrors, testChallenger } from '../learning/challenge.ts';
import { STATISTICS, type Statistic } from '../model/calibration.ts';
import { createPriorModel } from '../model/model.ts';
import { type PackedModel, packModel, publishModel } from '../registry/publish-model.ts';
import { checkModelName } from '../schema/model-name.ts';
import { type ObservationTable, PREDICTION_TARGETS, rowsWith, selectRows } from '../schema/observation-table.ts';
import { DEFAULT_TRAINING, MIN_TARGET_ROWS, type TrainParameters, trainModel } from '../training/train-model.ts';
import { formatSummaries } from './model-summaries.ts';
import {
  createFormatOption,
  createKvCapacityOption,
  createServerOption,
  formatRefusals,
  readRows,
  warnOfCopies,
} from './row-input.ts';

interface TrainOptions {
  readonly model: string;
  readonly input: readonly string[];
  readonly format?: Format;
  readonly kvCapacityTokens?: number;
  readonly server?: string;
  readonly statistic: Statistic;
  readonly anyModel?: boolean;
  readonly promote: string;
  readonly json?: boolean;
}

export function createTrainCommand(): Command {
  return new Command('train')
    .description('Train a model on observations, store it as a new version and serve it')
    .requiredOption('--model <name>', 'the target model that callers ask for')
    .requiredOption(
      '--input <file...>',
      'observations: JSON lines of ours or of llm-d, CSV, Parquet, or what a benchmark wrote; "-" is standard input',
    )
    .addOption(createFormatOption())
    .addOption(createKvCapacityOption())
    .addOption(createServerOption())
    .addOption(new Option('--statistic <name>', 'what predictions mean').choices(STATISTICS).default('p50'))
    .option('--any-model', 'also learn from rows that name another target model')
    .addOption(
      new Option('--promote <when>', 'serve it at once: if it is better than the prior, always or never')
        .choices(['better', 'true', 'false'])
        .default('better'),
    )
    .option('--json', 'print the summary as JSON')
    .action(train);
}

async function train(options: TrainOptions): Promise<void> {
  checkModelName(options.model);
  const showProgress = createProgress(() => realWorld.monotonicMs());
  const { table, refusals } = await readTrainingRows(options, showProgress);
  const parameters = { ...DEFAULT_TRAINING, statistic: options.statistic };
  showProgress('Testing on the newest rows');
  const errors = testOnNewest(table, parameters);
  const learned = packModel(trainModel('new', table, parameters, (part) => showProgress(`Learning ${part}`)));
  const promoted = options.promote === 'better' ? isBetter(errors) : options.promote === 'true';
  const id = await publish(options, { table, refusals, judgement: errors, learned, promoted });
  const rows = { total: table.count, ttft: rowsWith(table, 'ttft').length, tpot: rowsWith(table, 'tpot').length };
  const summary = { id, promoted, rows, refusals, judgement: errors, learned: learned.learned };
  if (options.json) printJson(summary);
  else printSummary(summary, options.promote);
}

async function readTrainingRows(
  options: TrainOptions,
  showProgress: (progress: string) => void,
): Promise<Pick<ReadTable, 'table' | 'refusals'>> {
  const { table, refusals } = await readRows(options, {
    action: 'train',
    targetModel: options.model,
    onProgress: (rows) => showProgress(`Reading: ${rows} rows`),
    check: ({ targetModel }) =>
      options.anyModel || targetModel === options.model ? undefined : `target_model is "${targetModel}"`,
  });
  checkEnoughRows(table, refusals);
  warnOfCopies(table);
  return { table, refusals };
}

interface Trained {
  readonly table: ObservationTable;
  readonly refusals: readonly Refusals[];
  /** The name is part of the JSON output. */
  readonly judgement: TestErrors;
  readonly learned: PackedModel;
  readonly promoted: boolean;
}

/** Resolves with the id of the version. */
async function publish({ model, input }: TrainOptions, trained: Trained): Promise<string> {
  const { table, refusals, judgement, learned, promoted } = trained;
  await using opened = await openCliStore({ ifAbsent: 'create' });
  const published = await publishModel(opened.store, {
    name: model,
    packed: learned,
    source: { files: input, rows: table.count, refusals, ...judgement },
    promotion: promoted ? 'promote' : 'keep',
    reason: 'trained from files',
    nowMs: opened.world.nowMs(),
  });
  return published.id;
}

interface Summary extends Omit<Trained, 'table' | 'learned'> {
  readonly id: string;
  readonly rows: { readonly total: number; readonly ttft: number; readonly tpot: number };
  readonly learned: PackedModel['learned'];
}

function printSummary(summary: Summary, promote: string): void {
  const { id, rows, refusals, learned } = summary;
  print(`Learned ${id} from ${rows.total} rows (${rows.ttft} with TTFT, ${rows.tpot} with TPOT)`);
  if (refusals.length > 0) print(`\nRows left out\n${formatRefusals(refusals)}`);
  print(`\n${formatSummaries(learned)}`);
  print(`\n${describePromotion(summary, promote)}`);
}

/** Throws with too few rows for each of TTFT and TPOT: then nothing is trained, and the prior answers. */
function checkEnoughRows(table: ObservationTable, refusals: readonly Refusals[]): void {
  const { count } = table;
  const most = Math.max(...PREDICTION_TARGETS.map((target) => rowsWith(table, target).length));
  if (most >= MIN_TARGET_ROWS) return;
  const rows = `${count} usable ${count === 1 ? 'row' : 'rows'}`;
  const usable = most === count ? rows : `${rows}, at most ${most} of them with the same time`;
  const why = refusals.length > 0 ? `\n${formatRefusals(refusals)}` : '';
  throw new Failure(
    'invalid',
    `Cannot train: ${usable}, it must be at least ${MIN_TARGET_ROWS}; the prior answers until then${why}`,
  );
}

/** This many of the newest rows are enough to decide if a trained model is better than the prior. */
const MAX_TESTED_ROWS = 10_000;

function testOnNewest(table: ObservationTable, parameters: TrainParameters): TestErrors {
  const first = Math.max(0, table.count - MAX_TESTED_ROWS);
  const newest = Array.from({ length: table.count - first }, (_, i) => first + i);
  return testChallenger(selectRows(table, newest), createPriorModel(), parameters);
}

function describePromotion(
  { id, promoted, judgement }: { readonly id: string; readonly promoted: boolean; readonly judgement: TestErrors },
  asked: string,
): string {
  if (promoted) return `${id} is served now`;
  const { judgedRows, championError, challengerError } = judgement;
  const toFactor = (logError: number) => Math.exp(logError).toFixed(2);
  const why = `not served: on the newest ${judgedRows} rows, a model of the rows before was off by a factor of ${toFactor(challengerError)}, the prior by ${toFactor(championError)}`;
  return `${asked === 'better' ? `${id} is ${why}\n` : ''}Serve it: trivet model promote ${id}`;
}
