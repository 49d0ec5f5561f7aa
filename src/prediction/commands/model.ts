/** Collects the subcommands of `trivet model`, and runs `promote`, `rollback` and `export`. */
import { Command } from 'commander';
import { addServiceOptions } from '../../command-line/open-operator.ts';
import { print, printJson, remark, writeOutput } from '../../command-line/output.ts';
import { Failure, isFailure } from '../../errors.ts';
import type { Operator } from '../../operations/call-on-store.ts';
import { compareTwoVersions } from '../administration/accuracy-operations.ts';
import { exportVersion, promote, rollBack, showVersion } from '../administration/model-operations.ts';
import { parseModelId } from '../schema/model-name.ts';
import { addAccuracyCommand } from './model-accuracy.ts';
import { createCapacityCommand } from './model-capacity.ts';
import { createEvaluateCommand } from './model-evaluate.ts';
import { createImportCommand } from './model-import.ts';
import { createTrainCommand } from './model-train.ts';
import { addVersionCommands, formatComparison } from './model-versions.ts';
import type { OpenModels, OutputOptions } from './open-models.ts';

export function createModelCommand(open: OpenModels): Command {
  const command = new Command('model').description('Train, evaluate, list and promote the models that predict latency');
  command.addCommand(createTrainCommand());
  command.addCommand(createEvaluateCommand(open));
  addVersionCommands(command, open);
  addAccuracyCommand(command, open);
  addServiceOptions(command.command('promote'))
    .description('Serve a version from now on')
    .argument('<id>', 'name@version')
    .option('--json', 'print JSON')
    .action(promoteVersion.bind(undefined, open));
  addServiceOptions(command.command('rollback'))
    .description('Serve again the version that was served before the present one')
    .argument('<name>', 'the target model')
    .option('--json', 'print JSON')
    .action(rollBackModel.bind(undefined, open));
  addServiceOptions(command.command('export'))
    .description('Write a version to a file')
    .argument('<id>', 'name, or name@version')
    .requiredOption('--output <file>', 'where to write it')
    .option('--json', 'print JSON')
    .action(exportModel.bind(undefined, open));
  command.addCommand(createImportCommand(open));
  command.addCommand(createCapacityCommand());
  return command;
}

async function promoteVersion(open: OpenModels, id: string, options: OutputOptions): Promise<void> {
  if (parseModelId(id).version === undefined)
    throw new Failure('invalid', `Cannot promote "${id}": say which version, as ${id}@1`);
  await using operator = await open(options);
  const { changed } = await operator.call(promote, { id });
  if (options.json) return printJson({ id, changed });
  print(changed ? `${id} is served now` : `${id} is served already`);
}

async function rollBackModel(open: OpenModels, model: string, options: OutputOptions): Promise<void> {
  await using operator = await open(options);
  const { id, from } = await operator.call(rollBack, { model }).catch((error: unknown) => {
    // A name may end like an id, so only an unknown name is taken for an id.
    if (!isFailure(error) || error.code !== 'not_found' || parseModelId(model).version === undefined) throw error;
    throw new Failure(
      'invalid',
      `Cannot roll back "${model}": give the name alone, or serve it by trivet model promote`,
    );
  });
  if (options.json) return printJson({ id, from });
  print(`${id} is served again, in place of ${from}`);
  await printComparison(operator, id, from);
}

/** Does not throw if the versions cannot be compared, because the rollback has succeeded. */
async function printComparison(operator: Operator, id: string, from: string): Promise<void> {
  try {
    const comparison = await operator.call(compareTwoVersions, { id, with: String(parseModelId(from).version) });
    if (comparison.rows > 0) print(formatComparison(comparison));
  } catch (error) {
    if (!isFailure(error)) throw error;
    remark(`No comparison: ${error.message}`);
  }
}

interface ExportOptions extends OutputOptions {
  readonly output: string;
}

async function exportModel(open: OpenModels, name: string, options: ExportOptions): Promise<void> {
  const { output, json } = options;
  await using operator = await open(options);
  // The version is named by its number, since another one may be served before the file is read.
  const { id, checksum } = await operator.call(showVersion, { id: name });
  const file = await operator.call(exportVersion, { id });
  await writeOutput(output, file);
  if (json) return printJson({ id, file: output, bytes: file.length, checksum });
  remark(`Wrote ${id}, ${file.length} bytes, to ${output}`);
}
