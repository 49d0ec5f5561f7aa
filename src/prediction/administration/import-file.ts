/**
 * Reads an uploaded model file, of XGBoost, LightGBM or our own, into what is stored. This takes up to seconds, so a service does
 * it in a process of its own.
 */
import { Failure } from '../../errors.ts';
import type { Statistic } from '../model/calibration.ts';
import type { TimeUnit, Transform } from '../model/imported-trees.ts';
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import { decodeModel } from '../model/model-codec.ts';
import { detectModelFile, importTrees, type ModelFileKind, placeImported } from '../registry/import-model.ts';
import { type PackedModel, packModel } from '../registry/publish-model.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';

/** How the trees of another library are to be read; a file of ours says that by itself. */
export interface TreesOptions {
  readonly target?: PredictionTarget | undefined;
  /** `name=field` each. */
  readonly features?: readonly string[] | undefined;
  readonly transform?: Transform | undefined;
  readonly unit?: TimeUnit | undefined;
  readonly podType?: string | undefined;
  readonly statistic?: Statistic | undefined;
}

export interface ImportFileOrder {
  readonly file: Uint8Array;
  readonly options: TreesOptions;
  /** The file of the served version, which goes on answering what the imported one does not. */
  readonly served: Uint8Array | undefined;
}

export interface ImportedFile {
  readonly kind: ModelFileKind;
  /** The id that a file of ours had. */
  readonly id: string | undefined;
  readonly packed: PackedModel;
}

export function readImportedFile({ file, options, served }: ImportFileOrder): ImportedFile {
  const kind = detectModelFile(file);
  if (kind !== 'trivet') {
    const packed = packModel(readTrees(kind, file, { options, served }));
    // What no process can load is refused now, not once it is promoted.
    decodeModel(packed.file);
    return { kind, id: undefined, packed };
  }
  checkNoOptions(options);
  const model = decodeModel(file);
  return { kind, id: model.id, packed: packModel(model) };
}

function checkNoOptions(options: TreesOptions): void {
  const [given] = Object.entries(options).find(([, value]) => value !== undefined) ?? [];
  if (given !== undefined)
    throw new Failure('invalid', `Cannot import the model: ${given} is for models of XGBoost and LightGBM`);
}

function readTrees(
  kind: Exclude<ModelFileKind, 'trivet'>,
  file: Uint8Array,
  { options, served }: Pick<ImportFileOrder, 'options' | 'served'>,
): LatencyModel {
  if (options.target === undefined)
    throw new Failure('invalid', 'Cannot import the model: say what it predicts with --target ttft or --target tpot');
  const imported = importTrees({
    kind,
    text: Buffer.from(file).toString('utf8'),
    features: parseFeatures(options.features ?? []),
    transform: options.transform ?? 'identity',
    unit: options.unit ?? 'ms',
  });
  const base = served === undefined ? createPriorModel() : decodeModel(served);
  const statistic = options.statistic ?? base.statistic;
  return placeImported(base, imported, { target: options.target, podType: options.podType, statistic });
}

function parseFeatures(mappings: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    mappings.map((mapping) => {
      const equals = mapping.lastIndexOf('=');
      if (equals < 1) throw new Failure('invalid', `Cannot read --features: "${mapping}" must be name=field`);
      return [mapping.slice(0, equals), mapping.slice(equals + 1)];
    }),
  );
}
