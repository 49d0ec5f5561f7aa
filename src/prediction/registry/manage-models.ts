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

/** Serves the version from now on; returns false if it was served already. Throws `not_found` for an unknown version. */
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
  /** If given, a rollback to another version throws `conflict`. */
  readonly expectedVersion?: number | undefined;
}

/** Returns the version that is now served again, and the one that was served before. */
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
  /** With an expected version, throws `conflict` if another one is served now. */
  readonly promotion: Publication['promotion'];
}

/** Returns the id of the new version. */
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
