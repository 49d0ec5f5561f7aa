/** Promotes versions, rolls back, and stores imported ones, for pages, API and commands. */
import type { Store } from '../../database/store.ts';
import type { AuditChange } from '../../operations/audit-change.ts';
import type { Actor } from '../../operations/operation.ts';
import type { World } from '../../world.ts';
import { formatModelId } from '../schema/model-name.ts';
import { promoteModel, type RolledBack, rollBackModel } from './model-store.ts';
import { type PackedModel, type Publication, type Published, publishModel } from './publish-model.ts';

export interface ManageModelsDependencies {
  readonly store: Store;
  readonly world: Pick<World, 'nowMs'>;
  readonly auditChange: AuditChange;
}

export interface NamedVersion {
  readonly name: string;
  readonly version: number;
}

/** Serves the version from now on; false when it was served already. Throws `not_found` for a version that is not there. */
export async function promoteVersion(
  { store, world, auditChange }: ManageModelsDependencies,
  actor: Actor,
  { name, version }: NamedVersion,
): Promise<boolean> {
  const nowMs = world.nowMs();
  const details = { model: formatModelId(name, version) };
  return await promoteModel(store, {
    name,
    version,
    nowMs,
    reason: actor.login === undefined ? 'promoted by hand' : `promoted by ${actor.login}`,
    audit: auditChange({ kind: 'model_promoted', actor, details }, nowMs),
  });
}

export interface RollbackOrder {
  readonly name: string;
  /** Throws `conflict` when it would lead to another version. */
  readonly expectedVersion?: number | undefined;
}

/** Returns the version that is served again, and the one that was served until then. */
export async function rollBackVersion(
  { store, world, auditChange }: ManageModelsDependencies,
  actor: Actor,
  { name, expectedVersion }: RollbackOrder,
): Promise<RolledBack> {
  const nowMs = world.nowMs();
  const audit = auditChange({ kind: 'model_rolled_back', actor, details: { model: name } }, nowMs);
  return await rollBackModel(store, { name, expectedVersion, nowMs, audit });
}

export interface Import {
  readonly name: string;
  readonly packed: PackedModel;
  readonly source: Readonly<Record<string, unknown>>;
  /** An expected version: throws `conflict` when another one is served by now. */
  readonly promotion: Publication['promotion'];
}

/** Returns the id that the version has from now on. */
export async function publishImport(
  { store, world, auditChange }: ManageModelsDependencies,
  actor: Actor,
  { promotion, ...imported }: Import,
): Promise<Published> {
  const nowMs = world.nowMs();
  return await publishModel(store, {
    ...imported,
    promotion,
    reason: actor.login === undefined ? 'imported' : `imported by ${actor.login}`,
    nowMs,
    listStatements: (id) => [
      auditChange({ kind: 'model_imported', actor, details: { model: id, promoted: promotion !== 'keep' } }, nowMs),
    ],
  });
}
