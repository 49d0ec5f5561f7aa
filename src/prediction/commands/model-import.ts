import { createReadStream } from 'node:fs';
import { Command, Option } from 'commander';
import { openCliStore } from '../../command-line/open-cli-store.ts';
import { print, printJson } from '../../command-line/output.ts';
import { describeError, Failure } from '../../errors.ts';
import { STATISTICS, type Statistic } from '../model/calibration.ts';
import { TIME_UNITS, type TimeUnit, TRANSFORMS, type Transform } from '../model/imported-trees.ts';
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import { decodeModel } from '../model/model-codec.ts';
import { detectModelFile, importTrees, type ModelFileKind, placeImported } from '../registry/import-model.ts';
import { listPromotedModels, readModelFile } from '../registry/model-store.ts';
import { packModel, publishModel } from '../registry/publish-model.ts';
import { checkModelName } from '../schema/model-name.ts';
import { TARGETS, type Target } from '../schema/observation-table.ts';

interface ImportOptions {
  readonly model?: string;
  readonly promote: boolean;
  readonly target?: Target;
  readonly features?: readonly string[];
  readonly transform?: Transform;
  readonly unit?: TimeUnit;
  readonly podType?: string;
  readonly statistic?: Statistic;
  readonly json?: boolean;
}

export function createImportCommand(): Command {
  return new Command('import')
    .description('Import a version from a file: an exported version, XGBoost JSON or LightGBM text')
    .argument('<file>', 'what to take')
    .option('--model <name>', 'the name to keep it under; that of an exported model when left out')
    .option('--no-promote', 'keep it without serving it')
    .addOption(new Option('--target <name>', 'what the trees of another library predict').choices(TARGETS))
    .option('--features <name=field,...>', 'what their features are here: a field of an input, or a number', splitList)
    .addOption(new Option('--transform <name>', 'what they learned of a time; identity').choices(TRANSFORMS))
    .addOption(new Option('--unit <name>', 'the unit of the time; ms').choices(TIME_UNITS))
    .option('--pod-type <name>', 'answer only for servers of this type')
    .addOption(new Option('--statistic <name>', 'what predictions of the model mean').choices(STATISTICS))
    .option('--json', 'print JSON')
    .action(importModel);
}

function splitList(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(',').map((part) => part.trim())].filter((part) => part !== '');
}

async function importModel(path: string, options: ImportOptions): Promise<void> {
  const file = await readModelBytes(path);
  const kind = detectModelFile(file);
  const exported = kind === 'trivet' ? decodeExported(file, options) : undefined;
  const name = options.model ?? exported?.id.replace(/@\d+$/, '');
  if (name === undefined) throw new Failure('invalid', 'Cannot import the model: say its name with --model');
  checkModelName(name);
  await using opened = await openCliStore({ ifAbsent: 'create' });
  const read = exported ?? (await readForeign(opened.store, { kind, file, name, options }));
  const id = await publishModel(opened.store, {
    name,
    packed: packModel(read),
    source: exported === undefined ? { file: path, library: kind, target: options.target } : { imported: exported.id },
    promotion: options.promote ? 'promote' : 'keep',
    reason: 'imported',
    nowMs: opened.world.nowMs(),
  });
  if (options.json) return printJson({ id, promoted: options.promote });
  print(options.promote ? `${id} is served now` : `Took ${path} as ${id}`);
}

/** Below what one string of this runtime holds, as JSON of XGBoost is read. */
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

/** An export says by itself what the options would. */
function decodeExported(file: Uint8Array, options: ImportOptions): LatencyModel {
  const given = (['target', 'features', 'transform', 'unit', 'podType', 'statistic'] as const).find(
    (option) => options[option] !== undefined,
  );
  if (given !== undefined)
    throw new Failure('invalid', `Cannot import the model: ${given} is for models of XGBoost and LightGBM`);
  return decodeModel(file);
}

interface ForeignFile {
  readonly kind: ModelFileKind;
  readonly file: Uint8Array;
  readonly name: string;
  readonly options: ImportOptions;
}

/** The served version goes on answering what the file does not. */
async function readForeign(store: OpenedStore, { kind, file, name, options }: ForeignFile): Promise<LatencyModel> {
  if (kind === 'trivet') throw new TypeError('An export is decoded elsewhere');
  if (options.target === undefined)
    throw new Failure('invalid', 'Cannot import the model: say what it predicts with --target ttft or --target tpot');
  const imported = importTrees({
    kind,
    text: Buffer.from(file).toString('utf8'),
    features: parseFeatures(options.features ?? []),
    transform: options.transform ?? 'identity',
    unit: options.unit ?? 'ms',
  });
  const served = (await listPromotedModels(store)).find((model) => model.name === name);
  const base = served ? decodeModel(await readModelFile(store, name, served.version)) : createPriorModel();
  const statistic = options.statistic ?? base.statistic;
  return placeImported(base, imported, { target: options.target, podType: options.podType, statistic });
}

type OpenedStore = Awaited<ReturnType<typeof openCliStore>>['store'];

function parseFeatures(mappings: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    mappings.map((mapping) => {
      const equals = mapping.lastIndexOf('=');
      if (equals < 1) throw new Failure('invalid', `Cannot read --features: "${mapping}" must be name=field`);
      return [mapping.slice(0, equals), mapping.slice(equals + 1)];
    }),
  );
}
