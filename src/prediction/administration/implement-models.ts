/** Implements the operations on models: list, show, promote, roll back, import, export, evaluate. */
import { Failure } from '../../errors.ts';
import { type Implementation, implement, type OperationContext } from '../../operations/operation.ts';
import { parseAge } from '../evaluation/stale-metrics.ts';
import { readVersionAccuracy } from '../live-accuracy/read-accuracy.ts';
import { compareVersions } from '../registry/compare-versions.ts';
import {
  type ManageModelsDependencies,
  promoteVersion,
  publishImport,
  rollBackVersion,
} from '../registry/manage-models.ts';
import {
  listModelVersions,
  listPromotedModels,
  type ModelVersion,
  type PromotedModel,
  readModelFile,
} from '../registry/model-store.ts';
import { checkModelName, formatModelId, type ParsedModelId, parseModelId } from '../schema/model-name.ts';
import { compareTwoVersions, readAccuracy } from './accuracy-operations.ts';
import { readSteps } from './accuracy-steps.ts';
import { checkProtocolOptions } from './evaluate-file.ts';
import { type FileReader, withFile } from './file-reader.ts';
import type { TreesOptions } from './import-file.ts';
import {
  evaluateObservations,
  exportVersion,
  importVersion,
  listVersions,
  promote,
  rollBack,
  showVersion,
  type VersionJson,
} from './model-operations.ts';

export interface ModelOperationsDependencies extends ManageModelsDependencies {
  readonly reader: FileReader;
}

export function implementModels(dependencies: ModelOperationsDependencies): Implementation[] {
  const { store, reader } = dependencies;
  return [
    implement(listVersions, (input) => listPage(dependencies, input)),
    implement(showVersion, async (input) => {
      const version = await findVersion(dependencies, input.id);
      return toJson(version, await readLive(dependencies));
    }),
    implement(compareTwoVersions, (input) => compare(dependencies, input)),
    implement(readAccuracy, (input) => readSteps(dependencies, input)),
    implement(exportVersion, async (input) => {
      const { name, version } = await findVersion(dependencies, input.id);
      return new Uint8Array(await readModelFile(store, name, version));
    }),
    implement(promote, async (input, { actor }) => {
      const { name, version } = parseModelId(input.id);
      if (version === undefined)
        throw new Failure('invalid', `Cannot promote "${input.id}": say which version, as ${input.id}@1`);
      return { id: input.id, changed: await promoteVersion(dependencies, actor, { name, version }) };
    }),
    implement(rollBack, async ({ model: name, expectedVersion }, { actor }) => {
      const { version, from } = await rollBackVersion(dependencies, actor, { name, expectedVersion });
      return { id: formatModelId(name, version), from: formatModelId(name, from) };
    }),
    implement(importVersion, (input, context) => importFile(dependencies, input, context)),
    implement(evaluateObservations, ({ holdOut, age, source, ...options }, { file }) => {
      const order = {
        ...NO_OPTIONS,
        ...options,
        holdOut: holdOut?.split(',').map((run) => run.trim()),
        age: age === undefined ? undefined : parseAge(age),
      };
      checkProtocolOptions(order);
      return withFile(file, (path) => reader.evaluate({ ...order, path, name: source, maxRows: MAX_UPLOADED_ROWS }));
    }),
  ];
}

async function compare(
  { store, world }: ModelOperationsDependencies,
  { id, with: wanted }: { readonly id: string; readonly with?: number | undefined },
) {
  const { name, version } = parseModelId(id);
  if (version === undefined) throw new Failure('invalid', `Cannot compare "${id}": say which version, as ${id}@1`);
  const other = wanted ?? (await listPromotedModels(store)).find((served) => served.name === name)?.version;
  if (other === undefined)
    throw new Failure('invalid', `Cannot compare "${id}": no version of "${name}" is served, so say with which one`);
  if (other === version)
    throw new Failure('invalid', `Cannot compare "${id}" with itself: say with which other version it is compared`, {
      field: 'with',
    });
  return await compareVersions(store, { name, version, other, nowMs: world.nowMs() });
}

/** Each row takes some 200 bytes of memory, and an evaluation copies rows. */
const MAX_UPLOADED_ROWS = 1_000_000;

const NO_OPTIONS = { format: undefined, model: undefined, kvCapacityTokens: undefined, server: undefined };

interface VersionsPage {
  readonly model?: string | undefined;
  readonly served?: string | undefined;
  readonly after?: string | undefined;
  readonly limit: number;
}

/** Reads all versions, because few are kept for each name. */
async function listPage(dependencies: ModelOperationsDependencies, { model, served, after, limit }: VersionsPage) {
  const all = await listModelVersions(dependencies.store, model);
  if (model !== undefined && all.length === 0)
    throw new Failure('not_found', `Cannot list the versions of "${model}": there is no such model`);
  const chosen = served === undefined ? all : all.filter(({ isPromoted }) => isPromoted);
  const rest = after === undefined ? chosen : chosen.filter((version) => isBehind(version, parseModelId(after)));
  const live = await readLive(dependencies);
  const versions = rest.slice(0, limit).map((version) => toJson(version, live));
  return { versions, next: rest.length > limit ? (versions.at(-1)?.id ?? null) : null };
}

/** Returns true if a version comes later in the list, which is sorted by name, then by version, the newest first. */
function isBehind(one: ModelVersion, { name, version = 0 }: ParsedModelId): boolean {
  return one.name === name ? one.version < version : Buffer.compare(Buffer.from(one.name), Buffer.from(name)) > 0;
}

type LiveById = ReadonlyMap<string, VersionJson['live']>;

async function readLive({ store, world }: ModelOperationsDependencies): Promise<LiveById> {
  const versions = await readVersionAccuracy(store, world.nowMs());
  return new Map(versions.map(({ targetModel, version, targets }) => [formatModelId(targetModel, version), targets]));
}

function toJson({ lineage, ...version }: ModelVersion, live: LiveById): VersionJson {
  const id = formatModelId(version.name, version.version);
  return {
    id,
    ...version,
    live: live.get(id) ?? {},
    lineage: JSON.parse(lineage) as Record<string, unknown>,
  };
}

/** A name alone means the served version, or else the newest. A name may end like an id: `claude@20240620`. */
export async function findVersion(
  { store }: Pick<ModelOperationsDependencies, 'store'>,
  id: string,
): Promise<ModelVersion> {
  const { name, version } = parseModelId(id);
  const ofVersion = version === undefined ? [] : await listModelVersions(store, name);
  const byVersion = ofVersion.find((candidate) => candidate.version === version);
  if (byVersion !== undefined) return byVersion;
  const versions = await listModelVersions(store, id);
  const found = versions.find((candidate) => candidate.isPromoted) ?? versions[0];
  if (found === undefined) throw new Failure('not_found', `Cannot find the model "${id}"`);
  return found;
}

interface ImportInput extends Omit<TreesOptions, 'features'> {
  readonly model?: string | undefined;
  readonly promote: 'true' | 'false';
  readonly source?: string | undefined;
  readonly features?: string | undefined;
}

async function importFile(
  dependencies: ModelOperationsDependencies,
  { model, promote: promoted, source, features, ...trees }: ImportInput,
  { file, actor }: OperationContext,
) {
  const options: TreesOptions = { ...trees, features: features?.split(',') };
  const served = model === undefined ? undefined : await findServed(dependencies, model);
  const base = served && (await readModelFile(dependencies.store, served.name, served.version));
  const { kind, id, packed } = await dependencies.reader.readImport({ file, options, served: base });
  const name = model ?? (id === undefined ? undefined : parseModelId(id).name);
  if (name === undefined) throw new Failure('invalid', 'Cannot import the model: say its name with --model');
  checkModelName(name);
  const lineage = id === undefined ? { file: source, library: kind, target: trees.target } : { imported: id };
  // Trees of another library answer one target. The served version answers the other, so it must not change meanwhile.
  const whenServed = kind === 'trivet' ? 'promote' : ({ version: served?.version, otherwise: 'refuse' } as const);
  const promotion = promoted === 'true' ? whenServed : 'keep';
  const published = await publishImport(dependencies, actor, { name, packed, source: lineage, promotion });
  return { id: published.id, promoted: published.isPromoted };
}

async function findServed({ store }: ModelOperationsDependencies, name: string): Promise<PromotedModel | undefined> {
  return (await listPromotedModels(store)).find((promoted) => promoted.name === name);
}
