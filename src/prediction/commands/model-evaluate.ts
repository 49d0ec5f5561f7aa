/** Runs `trivet model evaluate`: evaluates models on files of observations, and writes a report. */
import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { Command, InvalidArgumentError, Option } from 'commander';
import { addServiceOptions, type ServiceOptions } from '../../command-line/open-operator.ts';
import {
  checkWritable,
  createProgress,
  formatTable,
  print,
  printJson,
  remark,
  writeOutput,
} from '../../command-line/output.ts';
import { DURATION_RULE, readDuration } from '../../command-line/time-option.ts';
import { describeError, Failure } from '../../errors.ts';
import { realWorld } from '../../world.ts';
import {
  type AccuracyJson,
  checkProtocolOptions,
  type Evaluation,
  findMixedModels,
  measureAnswers,
} from '../administration/evaluate-file.ts';
import { evaluateObservations } from '../administration/model-operations.ts';
import { evaluate, PROTOCOLS, type Protocol } from '../evaluation/protocols.ts';
import { renderReport } from '../evaluation/report.ts';
import { type Age, parseAge } from '../evaluation/stale-metrics.ts';
import { describePath, type Format } from '../formats/read-observations.ts';
import type { ObservationTable } from '../schema/observation-table.ts';
import { DEFAULT_TRAINING } from '../training/train-model.ts';
import type { OpenModels } from './open-models.ts';
import {
  createFormatOption,
  createKvCapacityOption,
  createServerOption,
  formatRefusals,
  readRows,
  remarkAll,
  remarkCopies,
  warnOfCopies,
  warnOfIgnored,
} from './row-input.ts';
import { findServedModel } from './served-model.ts';

interface EvaluateOptions extends ServiceOptions {
  readonly input: readonly string[];
  readonly model?: string;
  readonly format?: Format;
  readonly protocol: Protocol;
  readonly json?: boolean;
  readonly report?: string;
  readonly kvCapacityTokens?: number;
  readonly server?: string;
  readonly holdOut?: readonly string[];
  readonly age?: string;
}

export function createEvaluateCommand(open: OpenModels): Command {
  return addServiceOptions(new Command('evaluate'))
    .description('Measure how well observations can be predicted, by models that have not seen them')
    .requiredOption('--input <file...>', 'observations, as for train')
    .option(
      '--model <name>',
      'only rows of this target model, and rows that name no target model; with --report, its served version stands beside',
    )
    .addOption(createFormatOption())
    .addOption(
      new Option(
        '--protocol <name>',
        'random: 90/10, 5 seeds; time: learn from the first 70 %; prequential: predict each row, then learn it; leave-…-out: learn from the other loads, servers or runs; stale-metrics: as time, predicted by old metrics',
      )
        .choices(PROTOCOLS)
        .default('random'),
    )
    .addOption(createKvCapacityOption())
    .addOption(createServerOption())
    .option('--hold-out <runs>', 'runs that leave-run-out tests, with commas; each in turn when left out', splitList)
    .option(
      '--age <age>',
      'how old metrics are with stale-metrics: a duration such as 500ms or 2s, or 10rows (default: 1s, or 10rows)',
      checkAge,
    )
    .option('--json', 'print JSON, all numbers but rows in percent')
    .option('--report <file>', 'write an HTML page with plots')
    .action(runEvaluation.bind(undefined, open));
}

async function runEvaluation(open: OpenModels, options: EvaluateOptions): Promise<void> {
  checkProtocolOptions({ protocol: options.protocol, holdOut: options.holdOut, age: readAge(options.age) });
  if (options.service !== undefined) return await evaluateAtService(open, options);
  if (options.report !== undefined) await checkWritable(options.report);
  const showProgress = createProgress(() => realWorld.monotonicMs());
  const table = await readEvaluatedRows(options, showProgress);
  const answers = evaluate(options.protocol, table, {
    parameters: DEFAULT_TRAINING,
    onProgress: showProgress,
    holdOut: options.holdOut,
    age: readAge(options.age),
  });
  const evaluation = measureAnswers(options.protocol, table, answers);
  if (options.json) printJson(evaluation);
  else print(formatAccuracies(evaluation));
  if (options.report === undefined) return;
  const { protocol, input: inputs, report } = options;
  const served = await findServedModel(options.model);
  await writeOutput(report, renderReport({ protocol, inputs, table, answers, served }));
  remark(`Wrote ${report}`);
}

async function readEvaluatedRows(
  options: EvaluateOptions,
  showProgress: (progress: string) => void,
): Promise<ObservationTable> {
  const { model } = options;
  const { table, refusals } = await readRows(options, {
    action: 'evaluate',
    targetModel: model ?? '',
    onProgress: (rows) => showProgress(`Reading: ${rows} rows`),
    check: ({ targetModel }) =>
      model === undefined || targetModel === model ? undefined : `target_model is "${targetModel}"`,
  });
  remarkAll([findMixedModels(table) ?? []].flat());
  if (refusals.length > 0) remark(`Rows left out\n${formatRefusals(refusals)}`);
  warnOfCopies(table);
  return table;
}

const MAX_AGE_MS = 7 * 86_400_000;

function splitList(text: string): string[] {
  return text.split(',').map((run) => run.trim());
}

/** Returns the age in the notation of the operation, which has milliseconds, seconds and rows. */
function checkAge(text: string): string {
  if (parseAge(text) !== undefined) return text;
  const ageMs = readDuration(text);
  if (ageMs !== undefined && isWhole(ageMs) && ageMs <= MAX_AGE_MS) return `${Math.round(ageMs)}ms`;
  throw new InvalidArgumentError(
    `it must be a number of rows, such as 10rows, or ${DURATION_RULE}; whole milliseconds, up to 7d.`,
  );
}

/** Allows for the rounding error of numbers such as 1.1 s. */
function isWhole(ms: number): boolean {
  return Math.abs(ms - Math.round(ms)) < 1e-6;
}

function readAge(text: string | undefined): Age | undefined {
  return text === undefined ? undefined : parseAge(text);
}

/** The service reads and evaluates the file. Plots need the rows, so they are drawn only without `--service`. */
async function evaluateAtService(open: OpenModels, options: EvaluateOptions): Promise<void> {
  const { input, protocol, format, model, kvCapacityTokens, server, holdOut, age, json } = options;
  const [path = ''] = input;
  if (options.report !== undefined)
    throw new Failure('invalid', 'Cannot use --report with --service: plots are drawn here; leave --service out');
  if (input.length !== 1)
    throw new Failure('invalid', 'Cannot use several --input files with --service: it takes one; leave --service out');
  const file = await readInput(path);
  await using operator = await open(options);
  const source = describePath(path);
  const given = { protocol, format, model, kvCapacityTokens, server, source, holdOut: holdOut?.join(','), age };
  const answer = await operator.call(evaluateObservations, given, file);
  const { left_out: leftOut = [], copies = 0, ignored = [], remarks = [], ...evaluation } = answer;
  warnOfIgnored(ignored);
  remarkAll(remarks);
  const refusals = leftOut.map(({ first_at: place, ...rows }) => ({ ...rows, firstAt: `${path}:${place}` }));
  if (refusals.length > 0) remark(`Rows left out\n${formatRefusals(refusals)}`);
  remarkCopies(copies);
  if (json) printJson(evaluation);
  else print(formatAccuracies(evaluation));
}

async function readInput(path: string): Promise<Uint8Array> {
  if (path === '-') return await buffer(process.stdin);
  return await readFile(path).catch((error: unknown) => {
    throw new Failure('invalid', `Cannot read "${path}": ${describeError(error)}`);
  });
}

function formatAccuracies({ ttft, tpot, tpot_by_output_tokens = {} }: Omit<Evaluation, 'protocol'>): string {
  return formatTable(
    ['target', 'rows', 'MAPE %', 'MdAPE %', 'WAPE %', 'bias %', 'p90 coverage %', 'p90 pinball %'],
    [
      formatAccuracy('TTFT', ttft),
      formatAccuracy('TPOT', tpot),
      ...Object.entries(tpot_by_output_tokens).map(([tokens, accuracy]) =>
        formatAccuracy(`TPOT of ${tokens} tokens`, accuracy),
      ),
    ],
  );
}

function formatAccuracy(name: string, accuracy: AccuracyJson): (string | number)[] {
  const { rows, mape, mdape, wape, bias, p90_coverage, p90_pinball } = accuracy;
  const percents = rows === 0 ? [] : [mape, mdape, wape, bias, p90_coverage, p90_pinball];
  return [name, rows, ...percents.map((value) => Number(value?.toFixed(2)))];
}
