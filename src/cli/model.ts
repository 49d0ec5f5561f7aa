import { writeFile } from 'node:fs/promises';
import { Command, Option } from 'commander';
import { Failure } from '../errors.ts';
import { STATISTICS, type Statistic } from '../prediction/calibration.ts';
import { describeModel, type TargetSummary } from '../prediction/describe-model.ts';
import { FORMATS, type Format } from '../prediction/formats/read-observations.ts';
import { readTable } from '../prediction/formats/read-table.ts';
import { checkModelName, formatModelId } from '../prediction/model-name.ts';
import {
  listModelVersions,
  type ModelVersion,
  promoteModel,
  readModelFile,
  rollBackModel,
} from '../prediction/model-store.ts';
import { rowsWith } from '../prediction/observation-table.ts';
import { publishModel } from '../prediction/publish-model.ts';
import { DEFAULT_TRAINING, trainModel } from '../prediction/train-model.ts';
import { realWorld } from '../world.ts';
import { createEvaluateCommand } from './model-evaluate.ts';
import { createImportCommand } from './model-import.ts';
import { formatSummaries } from './model-summaries.ts';
import { openCliStore } from './open-cli-store.ts';
import { createProgress, formatTable, print, printJson, remark } from './output.ts';
import { createKvCapacityOption, formatRefusals } from './read-rows.ts';

export function createModelCommand(): Command {
  const command = new Command('model').description('Train, evaluate, list and promote the models that predict latency');
  command.addCommand(createTrainCommand());
  command.addCommand(createEvaluateCommand());
  command.addCommand(
    new Command('list')
      .description('List the versions of every model; the one that is served is marked')
      .option('--model <name>', 'only this model')
      .option('--json', 'print JSON')
      .action(listVersions),
  );
  command.addCommand(
    new Command('show')
      .description('Show where a version came from and what it learned')
      .argument('<id>', 'name, or name@version')
      .option('--json', 'print JSON')
      .action(showVersion),
  );
  command.addCommand(
    new Command('promote').description('Serve a version from now on').argument('<id>', 'name@version').action(promote),
  );
  command.addCommand(
    new Command('rollback')
      .description('Serve again the version that was served before the present one')
      .argument('<name>')
      .action(rollBack),
  );
  command.addCommand(
    new Command('export')
      .description('Write a version to a file')
      .argument('<id>', 'name, or name@version')
      .requiredOption('--output <file>')
      .action(exportModel),
  );
  command.addCommand(createImportCommand());
  return command;
}

interface TrainOptions {
  readonly model: string;
  readonly input: readonly string[];
  readonly format?: Format;
  readonly kvCapacityTokens?: number;
  readonly statistic: Statistic;
  readonly anyModel?: boolean;
  readonly promote: string;
  readonly json?: boolean;
}

function createTrainCommand(): Command {
  return new Command('train')
    .description('Learn a model from observations, keep it as a new version and serve it')
    .requiredOption('--model <name>', 'the target model that callers ask for')
    .requiredOption(
      '--input <file...>',
      'observations: JSON lines of ours or of llm-d, CSV or Parquet; "-" is standard input',
    )
    .addOption(new Option('--format <name>', 'what the input is; detected when left out').choices(FORMATS))
    .addOption(createKvCapacityOption())
    .addOption(new Option('--statistic <name>', 'what predictions mean').choices(STATISTICS).default('p50'))
    .option('--any-model', 'also learn from rows that name another target model')
    .addOption(new Option('--promote <bool>', 'serve it at once').choices(['true', 'false']).default('true'))
    .option('--json', 'print the summary as JSON')
    .action(train);
}

async function train(options: TrainOptions): Promise<void> {
  checkModelName(options.model);
  const showProgress = createProgress(() => realWorld.monotonicMs());
  const { table, refusals } = await readTable(options.input, {
    format: options.format,
    targetModel: options.model,
    kvCapacityTokens: options.kvCapacityTokens,
    stdin: process.stdin,
    onProgress: (rows) => showProgress(`Reading: ${rows} rows`),
    check: ({ targetModel }) =>
      options.anyModel || targetModel === options.model ? undefined : `target_model is "${targetModel}"`,
  });
  if (table.count === 0)
    throw new Failure('invalid', `Cannot train: no usable row\n${formatRefusals(refusals) || 'The input is empty'}`);
  const parameters = { ...DEFAULT_TRAINING, statistic: options.statistic };
  const learned = trainModel('new', table, parameters, (part) => showProgress(`Learning ${part}`));
  await using opened = await openCliStore();
  const model = await publishModel(opened.store, {
    name: options.model,
    model: learned,
    source: { files: options.input, rows: table.count, refusals },
    promotion: options.promote === 'true' ? 'promote' : 'keep',
    reason: 'trained from files',
    nowMs: opened.world.nowMs(),
  });
  const rows = { total: table.count, ttft: rowsWith(table, 'ttft').length, tpot: rowsWith(table, 'tpot').length };
  const summary = { id: model.id, promoted: options.promote === 'true', rows, refusals, learned: describeModel(model) };
  if (options.json) return printJson(summary);
  print(`Learned ${model.id} from ${rows.total} rows (${rows.ttft} with TTFT, ${rows.tpot} with TPOT)`);
  if (refusals.length > 0) print(`\nRows left out\n${formatRefusals(refusals)}`);
  print(`\n${formatSummaries(summary.learned)}`);
  print(summary.promoted ? `\n${model.id} is served now` : `\nServe it: trivet model promote ${model.id}`);
}

async function listVersions({ model, json }: { model?: string; json?: boolean }): Promise<void> {
  await using opened = await openCliStore();
  const versions = await listModelVersions(opened.store, model);
  if (json) return printJson(versions.map(toJson));
  print(
    formatTable(
      ['id', 'served', 'made', 'parent', 'bytes', 'checksum'],
      versions.map((version) => [
        formatModelId(version.name, version.version),
        version.isPromoted ? 'yes' : '',
        new Date(version.createdAtMs).toISOString(),
        version.parentVersion === undefined ? undefined : formatModelId(version.name, version.parentVersion),
        version.sizeBytes,
        version.checksum.slice(0, 12),
      ]),
    ),
  );
}

function toJson({ lineage, ...version }: ModelVersion): Record<string, unknown> {
  return { id: formatModelId(version.name, version.version), ...version, lineage: JSON.parse(lineage) };
}

async function showVersion(id: string, { json }: { json?: boolean }): Promise<void> {
  await using opened = await openCliStore();
  const version = await findVersion(opened.store, id);
  if (json) return printJson(toJson(version));
  const { source, learned } = JSON.parse(version.lineage) as { source: object; learned: TargetSummary[] };
  print(`${formatModelId(version.name, version.version)}${version.isPromoted ? ' (served)' : ''}`);
  print(`made ${new Date(version.createdAtMs).toISOString()}, ${version.sizeBytes} bytes, SHA-256 ${version.checksum}`);
  if (version.parentVersion !== undefined) print(`after ${formatModelId(version.name, version.parentVersion)}`);
  print(`source ${JSON.stringify(source)}\n\n${formatSummaries(learned)}`);
}

type OpenedStore = Awaited<ReturnType<typeof openCliStore>>['store'];

/** A name alone means the version that is served, or else the newest. */
async function findVersion(store: OpenedStore, id: string): Promise<ModelVersion> {
  const { name, version } = parseId(id);
  const versions = await listModelVersions(store, name);
  const found =
    version === undefined
      ? (versions.find((candidate) => candidate.isPromoted) ?? versions[0])
      : versions.find((candidate) => candidate.version === version);
  if (found === undefined) throw new Failure('not_found', `Cannot find the model "${id}"`);
  return found;
}

function parseId(id: string): { name: string; version: number | undefined } {
  const match = /^([^@]+)(?:@([1-9]\d{0,14}))?$/.exec(id);
  if (match === null) throw new Failure('invalid', `Cannot read "${id}": it must be a name, or name@version`);
  return { name: match[1]!, version: match[2] === undefined ? undefined : Number(match[2]) };
}

async function promote(id: string): Promise<void> {
  const { name, version } = parseId(id);
  if (version === undefined) throw new Failure('invalid', `Cannot promote "${id}": say which version, as ${id}@1`);
  await using opened = await openCliStore();
  await promoteModel(opened.store, { name, version, nowMs: opened.world.nowMs(), reason: 'promoted by hand' });
  print(`${id} is served now`);
}

async function rollBack(name: string): Promise<void> {
  await using opened = await openCliStore();
  const version = await rollBackModel(opened.store, name, opened.world.nowMs());
  print(`${formatModelId(name, version)} is served again`);
}

async function exportModel(id: string, { output }: { output: string }): Promise<void> {
  await using opened = await openCliStore();
  const { name, version } = await findVersion(opened.store, id);
  const file = await readModelFile(opened.store, name, version);
  await writeFile(output, file);
  remark(`Wrote ${formatModelId(name, version)}, ${file.length} bytes, to ${output}`);
}
