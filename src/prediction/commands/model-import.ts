/** Runs `trivet model import`: stores a model file as a version. */
import { createReadStream } from 'node:fs';
import { Command, Option } from 'commander';
import { addServiceOptions, type ServiceOptions } from '../../command-line/open-operator.ts';
import { print, printJson } from '../../command-line/output.ts';
import { describeError, Failure } from '../../errors.ts';
import { importVersion } from '../administration/model-operations.ts';
import { STATISTICS, type Statistic } from '../model/calibration.ts';
import { TIME_UNITS, type TimeUnit, TRANSFORMS, type Transform } from '../model/imported-trees.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import type { OpenModels } from './open-models.ts';

interface ImportOptions extends ServiceOptions {
  readonly model?: string;
  readonly promote: boolean;
  readonly target?: PredictionTarget;
  readonly features?: readonly string[];
  readonly transform?: Transform;
  readonly unit?: TimeUnit;
  readonly podType?: string;
  readonly statistic?: Statistic;
  readonly json?: boolean;
}

export function createImportCommand(open: OpenModels): Command {
  return addServiceOptions(new Command('import'))
    .description('Import a version from a file: an exported version, XGBoost JSON or LightGBM text')
    .argument('<file>', 'the file to import')
    .option('--model <name>', 'name of the model; an exported model keeps its own unless given')
    .option('--no-promote', 'store it without serving it')
    .addOption(new Option('--target <name>', 'what the trees of another library predict').choices(PREDICTION_TARGETS))
    .option('--features <name=field,...>', 'what their features are here: a field of an input, or a number', splitList)
    .addOption(new Option('--transform <name>', 'what they learned of a time; identity').choices(TRANSFORMS))
    .addOption(new Option('--unit <name>', 'the unit of the time; ms').choices(TIME_UNITS))
    .option('--pod-type <name>', 'answer only for servers of this type')
    .addOption(new Option('--statistic <name>', 'what predictions of the model mean').choices(STATISTICS))
    .option('--json', 'print JSON')
    .action(importModel.bind(undefined, open));
}

function splitList(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(',').map((part) => part.trim())].filter((part) => part !== '');
}

async function importModel(open: OpenModels, path: string, options: ImportOptions): Promise<void> {
  const { model, promote, features, target, transform, unit, podType, statistic } = options;
  const file = await readModelBytes(path);
  await using operator = await open(options, { ifAbsent: 'create' });
  const trees = { features: features?.join(','), target, transform, unit, podType, statistic };
  const input = { model, promote: promote ? 'true' : 'false', source: path, ...trees } as const;
  const { id, promoted } = await operator.call(importVersion, input, file);
  if (options.json) return printJson({ id, promoted });
  print(promoted ? `${id} is served now` : `Took ${path} as ${id}`);
}

/** Less than the longest string of Node, because XGBoost's JSON is read into one string. */
export const MAX_FILE_BYTES = 512_000_000;

async function readModelBytes(path: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of createReadStream(path) as AsyncIterable<Uint8Array>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > MAX_FILE_BYTES) throw new RangeError(`it must have at most ${MAX_FILE_BYTES} bytes`);
    }
  } catch (error) {
    throw new Failure('invalid', `Cannot read "${path}": ${describeError(error)}`);
  }
  return Buffer.concat(chunks);
}
