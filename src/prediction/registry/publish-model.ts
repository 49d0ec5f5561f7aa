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
  listModelVersions,
  promoteModel,
  pruneModelVersions,
  saveModelVersion,
  takeVersionNumber,
} from './model-store.ts';

/** A model in the form that the store keeps. Another process makes it, so that publishing costs the serving thread little. */
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
  readonly promotion: 'promote' | 'keep';
  readonly reason: string;
  readonly nowMs: number;
  /** Records it in the audit log under the id that it gets. */
  readonly listStatements?: ((id: string) => readonly BoundStatement[]) | undefined;
}

/** How many versions a name keeps, beside those that a rollback needs. */
const KEPT_VERSIONS = 20;

/** Returns the id that the model has from now on. */
export async function publishModel(store: Store, publication: Publication): Promise<string> {
  const { name, packed, source, promotion, reason, nowMs } = publication;
  const parent = (await listModelVersions(store, name)).find((version) => version.isPromoted);
  const version = await takeVersionNumber(store, name);
  const id = formatModelId(name, version);
  const file = renameModel(packed.file, id);
  const saved = {
    name,
    version,
    parentVersion: parent?.version,
    createdAtMs: nowMs,
    checksum: checksumOf(file),
    lineage: JSON.stringify({ source, parameters: packed.parameters, learned: packed.learned }),
    file,
  };
  await saveModelVersion(store, saved, publication.listStatements?.(id));
  if (promotion === 'promote') await promoteModel(store, { name, version, nowMs, reason });
  await pruneModelVersions(store, name, KEPT_VERSIONS);
  return id;
}
