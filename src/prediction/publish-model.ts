/** A learned model becomes a version of its name in the store, and is served when it is promoted. */
import type { Store } from '../database/store.ts';
import { describeModel } from './describe-model.ts';
import type { LatencyModel } from './model.ts';
import { checksumOf, encodeModel } from './model-codec.ts';
import { formatModelId } from './model-name.ts';
import {
  listModelVersions,
  promoteModel,
  pruneModelVersions,
  saveModelVersion,
  takeVersionNumber,
} from './model-store.ts';

export interface Publication {
  readonly name: string;
  readonly model: LatencyModel;
  /** Where its rows came from: kept beside the model for whoever asks later. */
  readonly source: Readonly<Record<string, unknown>>;
  readonly promotion: 'promote' | 'keep';
  readonly reason: string;
  readonly nowMs: number;
}

/** How many versions a name keeps, beside those that a rollback needs. */
const KEPT_VERSIONS = 20;

/** Returns the model under the id that it has from now on. */
export async function publishModel(store: Store, publication: Publication): Promise<LatencyModel> {
  const { name, source, promotion, reason, nowMs } = publication;
  const parent = (await listModelVersions(store, name)).find((version) => version.isPromoted);
  const version = await takeVersionNumber(store, name);
  const model: LatencyModel = { ...publication.model, id: formatModelId(name, version) };
  const file = encodeModel(model);
  await saveModelVersion(store, {
    name,
    version,
    parentVersion: parent?.version,
    createdAtMs: nowMs,
    checksum: checksumOf(file),
    lineage: JSON.stringify({ source, learned: describeModel(model) }),
    file,
  });
  if (promotion === 'promote') {
    await promoteModel(store, { name, version, nowMs, reason });
    await pruneModelVersions(store, name, KEPT_VERSIONS);
  }
  return model;
}
