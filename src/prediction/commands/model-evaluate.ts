import { Command, InvalidArgumentError, Option } from 'commander';
import {
  checkWritable,
  createProgress,
  formatTable,
  print,
  printJson,
  remark,
  writeOutput,
} from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import { realWorld } from '../../world.ts';
import { type Accuracy, measureAccuracy } from '../evaluation/accuracy.ts';
import { evaluate, PROTOCOLS, type Protocol } from '../evaluation/protocols.ts';
import { renderReport } from '../evaluation/report.ts';
import type { Age } from '../evaluation/stale-metrics.ts';
import { FORMATS, type Format } from '../formats/read-observations.ts';
import { readTable } from '../formats/read-table.ts';
import { TARGETS } from '../schema/observation-table.ts';
import { DEFAULT_TRAINING } from '../training/train-model.ts';
import {
  checkAnyRow,
  createKvCapacityOption,
  createServerOption,
  formatRefusals,
  warnOfCopies,
  warnOfIgnored,
  warnOfTimes,
  warnOfUnits,
} from './row-input.ts';

interface EvaluateOptions {
  readonly input: readonly string[];
  readonly model?: string;
  readonly format?: Format;
  readonly protocol: Protocol;
  readonly json?: boolean;
  readonly report?: string;
  readonly kvCapacityTokens?: number;
  readonly server?: string;
  readonly holdOut?: readonly string[];
  readonly age?: Age;
}

export function createEvaluateCommand(): Command {
  return new Command('evaluate')
    .description('Measure how well observations can be predicted, by models that have not seen them')
    .requiredOption('--input <file...>', 'observations, as for train')
    .option('--model <name>', 'only rows of this target model; rows that name none are too')
    .addOption(new Option('--format <name>', 'what the input is; detected when left out').choices(FORMATS))
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
    .option('--hold-out <runs>', 'runs that leave-run-out judges, with commas; each in turn when left out', splitList)
    .option(
      '--age <age>',
      'how old metrics are with stale-metrics, as 500ms, 2s or 10rows (default: 1s, or 10rows)',
      readAge,
    )
    .option('--json', 'print JSON, all numbers but rows in percent')
    .option('--report <file>', 'write an HTML page with plots')
    .action(runEvaluation);
}

async function runEvaluation(options: EvaluateOptions): Promise<void> {
  if (options.holdOut !== undefined && options.protocol !== 'leave-run-out')
    throw new Failure('invalid', `Cannot hold runs out with --protocol ${options.protocol}: it must be leave-run-out`);
  if (options.age !== undefined && options.protocol !== 'stale-metrics')
    throw new Failure('invalid', `Cannot use --age with --protocol ${options.protocol}: it must be stale-metrics`);
  if (options.report !== undefined) await checkWritable(options.report);
  const showProgress = createProgress(() => realWorld.monotonicMs());
  const read = await readTable(options.input, {
    format: options.format,
    targetModel: options.model ?? '',
    kvCapacityTokens: options.kvCapacityTokens,
    server: options.server,
    stdin: process.stdin,
    onProgress: (rows) => showProgress(`Reading: ${rows} rows`),
    check: ({ targetModel }) =>
      options.model === undefined || targetModel === options.model ? undefined : `target_model is "${targetModel}"`,
  });
  const { table, refusals } = read;
  warnOfIgnored(read.ignoredFields);
  checkAnyRow(read, 'evaluate');
  warnOfUnits(table);
  warnOfTimes(table);
  if (table.models.length > 1)
    remark(`All of ${table.models.length} target models are judged as one; --model takes one`);
  if (refusals.length > 0) remark(`Rows left out\n${formatRefusals(refusals)}`);
  warnOfCopies(table);
  const answers = evaluate(options.protocol, table, {
    parameters: DEFAULT_TRAINING,
    onProgress: showProgress,
    holdOut: options.holdOut,
    age: options.age,
  });
  const ttft = measureAccuracy(answers.ttft);
  const tpot = measureAccuracy(answers.tpot);
  if (ttft === undefined && tpot === undefined)
    throw new Failure('invalid', `Cannot evaluate: the protocol "${options.protocol}" left no row to judge`);
  if (options.json) printJson({ protocol: options.protocol, ttft: toJson(ttft), tpot: toJson(tpot) });
  else print(formatAccuracies({ ttft, tpot }));
  if (options.report === undefined) return;
  await writeOutput(
    options.report,
    renderReport({ protocol: options.protocol, inputs: options.input, table, answers }),
  );
  remark(`Wrote ${options.report}`);
}

function splitList(text: string): string[] {
  return text.split(',').map((run) => run.trim());
}

function readAge(text: string): Age {
  const [, number, unit] = /^(\d+)(ms|s|rows)$/.exec(text) ?? [];
  if (number === undefined) throw new InvalidArgumentError('it must be a whole number with ms, s or rows after it.');
  return unit === 'rows' ? { rows: Number(number) } : { ms: Number(number) * (unit === 's' ? 1000 : 1) };
}

/** The names are an interface: scripts read them. */
function toJson(accuracy: Accuracy | undefined) {
  if (accuracy === undefined)
    return {
      rows: 0,
      mape: null,
      mdape: null,
      wape: null,
      bias: null,
      p50_coverage: null,
      p90_coverage: null,
      p90_pinball: null,
    };
  const { rows, mape, mdape, wape, bias, p50Coverage, p90Coverage, p90Pinball } = accuracy;
  return {
    rows,
    mape,
    mdape,
    wape,
    bias,
    p50_coverage: p50Coverage,
    p90_coverage: p90Coverage,
    p90_pinball: p90Pinball,
  };
}

function formatAccuracies(accuracies: Record<'ttft' | 'tpot', Accuracy | undefined>): string {
  return formatTable(
    ['target', 'rows', 'MAPE %', 'MdAPE %', 'WAPE %', 'bias %', 'p90 coverage %', 'p90 pinball %'],
    TARGETS.map((target) => {
      const a = accuracies[target];
      const percents = a && [a.mape, a.mdape, a.wape, a.bias, a.p90Coverage, a.p90Pinball];
      return [target.toUpperCase(), a?.rows ?? 0, ...(percents?.map((value) => Number(value.toFixed(2))) ?? [])];
    }),
  );
}
