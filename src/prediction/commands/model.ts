import { Command } from 'commander';
import { openCliStore } from '../../command-line/open-cli-store.ts';
import { print, printJson, remark, writeOutput } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import { promoteModel, readModelFile, rollBackModel } from '../registry/model-store.ts';
import { formatModelId } from '../schema/model-name.ts';
import { createCapacityCommand } from './model-capacity.ts';
import { createEvaluateCommand } from './model-evaluate.ts';
import { createImportCommand } from './model-import.ts';
import { createTrainCommand } from './model-train.ts';
import { addVersionCommands, findVersion, parseId } from './model-versions.ts';

export function createModelCommand(): Command {
  const command = new Command('model').description('Train, evaluate, list and promote the models that predict latency');
  command.addCommand(createTrainCommand());
  command.addCommand(createEvaluateCommand());
  addVersionCommands(command);
  command
    .command('promote')
    .description('Serve a version from now on')
    .argument('<id>', 'name@version')
    .option('--json', 'print JSON')
    .action(promote);
  command
    .command('rollback')
    .description('Serve again the version that was served before the present one')
    .argument('<name>', 'the target model')
    .option('--json', 'print JSON')
    .action(rollBack);
  command
    .command('export')
    .description('Write a version to a file')
    .argument('<id>', 'name, or name@version')
    .requiredOption('--output <file>', 'where to write it')
    .option('--json', 'print JSON')
    .action(exportModel);
  command.addCommand(createImportCommand());
  command.addCommand(createCapacityCommand());
  return command;
}

interface OutputOptions {
  readonly json?: boolean;
}

async function promote(id: string, { json }: OutputOptions): Promise<void> {
  const { name, version } = parseId(id);
  if (version === undefined) throw new Failure('invalid', `Cannot promote "${id}": say which version, as ${id}@1`);
  await using opened = await openCliStore();
  const nowMs = opened.world.nowMs();
  const changed = await promoteModel(opened.store, { name, version, nowMs, reason: 'promoted by hand' });
  if (json) return printJson({ id, changed });
  print(changed ? `${id} is served now` : `${id} is served already`);
}

async function rollBack(id: string, { json }: OutputOptions): Promise<void> {
  const { name, version: named } = parseId(id);
  if (named !== undefined)
    throw new Failure('invalid', `Cannot roll back "${id}": give the name alone, or serve it by trivet model promote`);
  await using opened = await openCliStore();
  const version = await rollBackModel(opened.store, name, opened.world.nowMs());
  if (json) return printJson({ id: formatModelId(name, version) });
  print(`${formatModelId(name, version)} is served again`);
}

async function exportModel(id: string, { output, json }: OutputOptions & { readonly output: string }): Promise<void> {
  await using opened = await openCliStore();
  const { name, version, checksum } = await findVersion(opened.store, id);
  const file = await readModelFile(opened.store, name, version);
  await writeOutput(output, file);
  const written = formatModelId(name, version);
  if (json) return printJson({ id: written, file: output, bytes: file.length, checksum });
  remark(`Wrote ${written}, ${file.length} bytes, to ${output}`);
}
