/** Stores a trained model as a version, promotes it, and deletes versions beyond the number that is kept. */
import type { BoundStatement, Store } from '../../database/store.ts';
import {
  describeModel,
  describeParameters,
  type LineageParameters,
  type TargetSummary,
} from '../model/describe-model.ts';
import type { LatencyModel } from '../model/model.ts';
import { checksumOf, encodeModel, renameModel } from '../model/model-codec.ts';
import { formatModelId } from '../schema/model-name.ts';
import {
  type ExpectedServed,
  listModelVersions,
  type ModelVersion,
  type NewModelVersion,
  promoteModel,
  pruneModelVersions,
  saveModelVersion,
  saveSuccessor,
  takeVersionNumber,
} from './model-store.ts';

/** A model encoded for the store. Another process encodes it, so that publishing takes the serving thread little time. */
export interface PackedModel {
  readonly file: Uint8Array;
  readonly learned: readonly TargetSummary[];
  readonly parameters: LineageParameters | undefined;
}

export function packModel(model: LatencyModel): PackedModel {
  return { file: encodeModel(model), learned: describeModel(model), parameters: describeParameters(model) };
}

export interface Publication {
  readonly name: string;
  readonly packed: PackedModel;
  /** The origin of its rows, kept with the model. */
  readonly source: Readonly<Record<string, unknown>>;
  /** With an expected version, promotes the model only if that version is still served. */
  readonly promotion: 'promote' | 'keep' | ExpectedServed;
  readonly reason: string;
  readonly nowMs: number;
  /** Returns statements for the same transaction, such as the audit record with the new id. */
  readonly listStatements?: ((id: string) => readonly BoundStatement[]) | undefined;
}

/** How many versions of a name are kept, in addition to those that a rollback needs. */
const KEPT_VERSIONS = 20;

export interface Published {
  /** The id of the new version. */
  readonly id: string;
  readonly isPromoted: boolean;
}

export async function publishModel(store: Store, publication: Publication): Promise<Published> {
  const { name, packed, source, nowMs } = publication;
  const parentVersion = await findParent(store, publication);
  const version = await takeVersionNumber(store, name);
  const id = formatModelId(name, version);
  const file = renameModel(packed.file, id);
  const saved = {
    name,
    version,
    parentVersion,
    createdAtMs: nowMs,
    checksum: checksumOf(file),
    lineage: JSON.stringify({ source, parameters: packed.parameters, learned: packed.learned }),
    file,
  };
  const isPromoted = await save(store, saved, { ...publication, statements: publication.listStatements?.(id) ?? [] });
  await pruneModelVersions(store, name, KEPT_VERSIONS);
  return { id, isPromoted };
}

async function findParent(store: Store, { name, promotion }: Publication): Promise<number | undefined> {
  if (typeof promotion === 'object') return promotion.version;
  return (await listModelVersions(store, name)).find((version) => version.isPromoted)?.version;
}

type SaveOptions = Pick<Publication, 'promotion' | 'reason' | 'nowMs'> & {
  readonly statements: readonly BoundStatement[];
};

/** Returns whether the version is promoted. */
async function save(store: Store, saved: NewModelVersion, options: SaveOptions): Promise<boolean> {
  const { promotion, reason, nowMs, statements } = options;
  if (typeof promotion === 'object')
    return await saveSuccessor(store, saved, { succeeds: promotion, reason, nowMs, statements });
  await saveModelVersion(store, saved, statements);
  if (promotion === 'promote') await promoteModel(store, { name: saved.name, version: saved.version, nowMs, reason });
  return promotion === 'promote';
}

/** Returns the id of the newest sample at the training of a version; 0 for a version that was not trained on samples. */
export function findLastSampleId({ lineage }: Pick<ModelVersion, 'lineage'>): number {
  const { source } = JSON.parse(lineage) as { readonly source?: { readonly lastSampleId?: number } };
  return source?.lastSampleId ?? 0;
}
