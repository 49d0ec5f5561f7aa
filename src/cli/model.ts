import { writeFile } from 'node:fs/promises';
import { Command } from 'commander';
import { Failure } from '../errors.ts';
import type { TargetSummary } from '../prediction/describe-model.ts';
import { formatModelId } from '../prediction/model-name.ts';
import {
  listModelVersions,
  type ModelVersion,
  promoteModel,
  readModelFile,
  rollBackModel,
} from '../prediction/model-store.ts';
import { createEvaluateCommand } from './model-evaluate.ts';
import { createImportCommand } from './model-import.ts';
import { formatSummaries } from './model-summaries.ts';
import { createTrainCommand } from './model-train.ts';
import { openCliStore } from './open-cli-store.ts';
import { formatTable, print, printJson, remark } from './output.ts';

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
  const { source, parameters, learned } = JSON.parse(version.lineage) as Lineage;
  print(`${formatModelId(version.name, version.version)}${version.isPromoted ? ' (served)' : ''}`);
  print(`made ${new Date(version.createdAtMs).toISOString()}, ${version.sizeBytes} bytes, SHA-256 ${version.checksum}`);
  if (version.parentVersion !== undefined) print(`after ${formatModelId(version.name, version.parentVersion)}`);
  print(`source ${JSON.stringify(source)}`);
  if (parameters !== undefined) print(`parameters ${JSON.stringify(parameters)}`);
  print(`\n${formatSummaries(learned)}`);
}

interface Lineage {
  readonly source: object;
  /** Absent when it was not learned here. */
  readonly parameters?: object;
  readonly learned: readonly TargetSummary[];
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
