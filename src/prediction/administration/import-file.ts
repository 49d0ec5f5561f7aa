/**
 * Converts an uploaded model file, of XGBoost, LightGBM or our own, to a version for the store. This can take seconds, so a service
 * does it in a separate process.
 */
import { Failure } from '../../errors.ts';
import type { Statistic } from '../model/calibration.ts';
import type { TimeUnit, Transform } from '../model/imported-trees.ts';
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import { decodeModel } from '../model/model-codec.ts';
import { detectModelFile, importTrees, type ModelFileKind, placeImported } from '../registry/import-model.ts';
import { type PackedModel, packModel } from '../registry/publish-model.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';

/** How to read the trees of another library. Our own files do not need these options. */
export interface TreesOptions {
  readonly target?: PredictionTarget | undefined;
  /** Each is `name=field`. */
  readonly features?: readonly string[] | undefined;
  readonly transform?: Transform | undefined;
  readonly unit?: TimeUnit | undefined;
  readonly podType?: string | undefined;
  readonly statistic?: Statistic | undefined;
}

export interface ImportFileOrder {
  readonly file: Uint8Array;
  readonly options: TreesOptions;
  /** The file of the served version, which still answers what the imported trees do not. */
  readonly served: Uint8Array | undefined;
}

export interface ImportedFile {
  readonly kind: ModelFileKind;
  /** The id in one of our own files. */
  readonly id: string | undefined;
  readonly packed: PackedModel;
}

export function readImportedFile({ file, options, served }: ImportFileOrder): ImportedFile {
  const kind = detectModelFile(file);
  if (kind !== 'trivet') {
    const packed = packModel(readTrees(kind, file, { options, served }));
    // A file that no process can load is refused now, not when it is promoted.
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
