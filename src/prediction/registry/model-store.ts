/** Stores model versions as immutable rows (the file is a column), and which of them is served (promotion, rollback). */
import { type BoundStatement, type Procedure, procedure, type Store, statement } from '../../database/store.ts';
import { Failure } from '../../errors.ts';

/** The topic by which every process learns that another version is served, or that a version was deleted. */
export const MODELS_TOPIC = 'models';

export interface NewModelVersion {
  readonly name: string;
  readonly version: number;
  /** The version that was served when this one was made. */
  readonly parentVersion: number | undefined;
  readonly createdAtMs: number;
  readonly checksum: string;
  /** JSON: the origin of its rows, how it was learned, and its errors. */
  readonly lineage: string;
  readonly file: Uint8Array;
}

export interface ModelVersion extends Omit<NewModelVersion, 'file'> {
  readonly sizeBytes: number;
  readonly isPromoted: boolean;
}

export interface PromotedModel {
  readonly name: string;
  readonly version: number;
  readonly checksum: string;
  readonly promotedAtMs: number;
}

interface VersionRow {
  readonly name: string;
  readonly version: number;
  readonly parent_version: number | null;
  readonly created_at_ms: number;
  readonly checksum: string;
  readonly size_bytes: number;
  readonly lineage: string;
  readonly is_promoted: number;
}

// Each number is given out once. A failed training leaves a gap; a number never gets a second file.
const takeNumberSql = statement<{ last_version: number }>(
  'model-take-number',
  `INSERT INTO models (name, last_version) VALUES ($1, 1)
   ON CONFLICT (name) DO UPDATE SET last_version = models.last_version + 1 RETURNING last_version`,
);
const insertVersionSql = statement(
  'model-insert-version',
  `INSERT INTO model_versions (name, version, parent_version, created_at_ms, checksum, size_bytes, lineage, file)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
);
const listVersionsSql = statement<VersionRow>(
  'model-list-versions',
  `SELECT v.name, v.version, v.parent_version, v.created_at_ms, v.checksum, v.size_bytes, v.lineage,
     CASE WHEN m.promoted_version = v.version THEN 1 ELSE 0 END AS is_promoted
   FROM model_versions v JOIN models m ON m.name = v.name
   WHERE ($1 = '' OR v.name = $1) ORDER BY v.name, v.version DESC`,
);
const fileOfVersionSql = statement<{ file: Uint8Array }>(
  'model-file',
  'SELECT file FROM model_versions WHERE name = $1 AND version = $2',
);
const listPromotedSql = statement<{ name: string; version: number; checksum: string; promoted_at_ms: number }>(
  'model-list-promoted',
  `SELECT v.name, v.version, v.checksum, m.promoted_at_ms FROM models m
   JOIN model_versions v ON v.name = m.name AND v.version = m.promoted_version ORDER BY v.name`,
);
// A served version is not promoted again: a rollback would lead from it to itself.
const setPromotedSql = statement<{ version: number }>(
  'model-set-promoted',
  `UPDATE models SET promoted_version = $2, promoted_at_ms = $3
   WHERE name = $1 AND (promoted_version IS NULL OR promoted_version <> $2)
     AND EXISTS (SELECT 1 FROM model_versions v WHERE v.name = $1 AND v.version = $2)
   RETURNING promoted_version AS version`,
);
const promotedVersionSql = statement<{ promoted_version: number | null }>(
  'model-promoted-version',
  'SELECT promoted_version FROM models WHERE name = $1',
);
const insertPromotionSql = statement(
  'model-insert-promotion',
  `INSERT INTO model_promotions (name, number, version, at_ms, reason)
   SELECT $1, COALESCE(MAX(number), 0) + 1, $2, $3, $4 FROM model_promotions WHERE name = $1`,
);
// A rollback needs a promotion whose version still exists. All versions between two promotions of the served one, $2, may be
// deleted.
const previousPromotionSql = statement<{ number: number; version: number }>(
  'model-previous-promotion',
  `SELECT p.number, p.version FROM model_promotions p
   JOIN model_versions v ON v.name = p.name AND v.version = p.version
   WHERE p.name = $1 AND p.version <> $2 AND p.undone_at_ms IS NULL ORDER BY p.number DESC LIMIT 1`,
);
const undoPromotionsSql = statement(
  'model-undo-promotions',
  'UPDATE model_promotions SET undone_at_ms = $3 WHERE name = $1 AND number > $2 AND undone_at_ms IS NULL',
);
// The versions of the last five promotions stay whatever their age: a rollback must find them.
const pruneVersionsSql = statement<{ version: number }>(
  'model-prune-versions',
  `DELETE FROM model_versions WHERE name = $1
     AND version <= (SELECT last_version FROM models WHERE name = $1) - $2
     AND version NOT IN (SELECT p.version FROM model_promotions p WHERE p.name = $1 AND p.undone_at_ms IS NULL
       ORDER BY p.number DESC LIMIT 5)
   RETURNING version`,
);

export async function takeVersionNumber(store: Store, name: string): Promise<number> {
  const [row] = await store.write(takeNumberSql, [name]);
  return row!.last_version;
}

/** Stores a version; `statements` run in the same transaction. */
export async function saveModelVersion(
  store: Store,
  version: NewModelVersion,
  statements: readonly BoundStatement[] = [],
): Promise<void> {
  await store.writeAll([insertVersionStatement(version), ...statements]);
}

function insertVersionStatement(version: NewModelVersion): BoundStatement {
  const parameters = [
    version.name,
    version.version,
    version.parentVersion ?? null,
    version.createdAtMs,
    version.checksum,
    version.file.length,
    version.lineage,
    version.file,
  ];
  return { statement: insertVersionSql, parameters };
}

/** Lists the versions of one model, or of all models without `name`, the newest first. */
export async function listModelVersions(store: Store, name = ''): Promise<ModelVersion[]> {
  const rows = await store.read(listVersionsSql, [name]);
  return rows.map((row) => ({
    name: row.name,
    version: row.version,
    parentVersion: row.parent_version ?? undefined,
    createdAtMs: row.created_at_ms,
    checksum: row.checksum,
    sizeBytes: row.size_bytes,
    lineage: row.lineage,
    isPromoted: row.is_promoted === 1,
  }));
}

export async function readModelFile(store: Store, name: string, version: number): Promise<Uint8Array> {
  const [row] = await store.read(fileOfVersionSql, [name, version]);
  if (row === undefined) throw unknownVersion(name, version);
  return row.file;
}

export async function listPromotedModels(store: Store): Promise<PromotedModel[]> {
  const rows = await store.read(listPromotedSql);
  return rows.map(({ promoted_at_ms, ...promoted }) => ({ ...promoted, promotedAtMs: promoted_at_ms }));
}

interface Promotion {
  readonly name: string;
  readonly version: number;
  readonly nowMs: number;
  readonly reason: string;
  /** Runs only if the promotion changes something. */
  readonly audit?: BoundStatement | undefined;
  readonly markChanged: ReturnType<Store['markChanged']>;
}

export const promoteProcedure: Procedure<Promotion, boolean> = procedure(
  import.meta.url,
  'promoteProcedure',
  async (tx, { name, version, nowMs, reason, markChanged, audit }) => {
    const [promoted] = await tx.run(setPromotedSql, [name, version, nowMs]);
    if (promoted === undefined) {
      const [model] = await tx.run(promotedVersionSql, [name]);
      if (model?.promoted_version === version) return false;
      throw unknownVersion(name, version);
    }
    await tx.run(insertPromotionSql, [name, version, nowMs, reason]);
    await tx.run(markChanged.statement, markChanged.parameters);
    if (audit !== undefined) await tx.run(audit.statement, audit.parameters);
    return true;
  },
);

interface Succession extends Promotion {
  readonly saved: NewModelVersion;
  readonly statements: readonly BoundStatement[];
  readonly succeeds: ExpectedServed;
}

/** The version that a new one is to replace. If another one is served now, that stays served. */
export interface ExpectedServed {
  /** Undefined if no version was served. */
  readonly version: number | undefined;
  /** `keep` stores the new version without serving it; `refuse` throws `conflict` and stores nothing. */
  readonly otherwise: 'keep' | 'refuse';
}

export const saveSuccessorProcedure: Procedure<Succession, boolean> = procedure(
  import.meta.url,
  'saveSuccessorProcedure',
  async (tx, { saved, statements, succeeds, ...promotion }) => {
    await tx.runAll([insertVersionStatement(saved), ...statements]);
    const [model] = await tx.run(promotedVersionSql, [saved.name]);
    if ((model?.promoted_version ?? undefined) === succeeds.version) return await promoteProcedure.run(tx, promotion);
    if (succeeds.otherwise === 'keep') return false;
    throw new Failure(
      'conflict',
      `Cannot promote the new version of "${saved.name}": another one was promoted meanwhile`,
    );
  },
);

interface Rollback extends Omit<Promotion, 'version' | 'reason'> {
  /** The target of the rollback that was shown to the caller. */
  readonly expectedVersion?: number | undefined;
}

export interface RolledBack {
  /** The version that is served again. */
  readonly version: number;
  /** The version that was served until then. */
  readonly from: number;
}

export const rollbackProcedure: Procedure<Rollback, RolledBack> = procedure(
  import.meta.url,
  'rollbackProcedure',
  async (tx, { name, nowMs, markChanged, expectedVersion, audit }) => {
    const [model] = await tx.run(promotedVersionSql, [name]);
    if (model === undefined) throw new Failure('not_found', `Cannot roll back "${name}": there is no such model`);
    const served = model.promoted_version;
    const [previous] = served === null ? [] : await tx.run(previousPromotionSql, [name, served]);
    if (served === null || previous === undefined)
      throw new Failure('conflict', `Cannot roll back "${name}": no other version was served before this one`);
    if (expectedVersion !== undefined && expectedVersion !== previous.version)
      throw new Failure('conflict', `Cannot roll back "${name}": it would lead to version ${previous.version} by now`);
    await tx.run(undoPromotionsSql, [name, previous.number, nowMs]);
    await tx.run(setPromotedSql, [name, previous.version, nowMs]);
    await tx.run(markChanged.statement, markChanged.parameters);
    if (audit !== undefined) await tx.run(audit.statement, audit.parameters);
    return { version: previous.version, from: served };
  },
);

/** Serves this version from now on, in every process; returns false if it was served already. */
export async function promoteModel(store: Store, promotion: Omit<Promotion, 'markChanged'>): Promise<boolean> {
  return await store.call(promoteProcedure, {
    ...promotion,
    markChanged: store.markChanged(MODELS_TOPIC, promotion.nowMs),
  });
}

/**
 * Saves a version, and serves it unless another than the expected version is served now; returns true if it is served. With
 * `refuse`, throws `conflict` in that case and saves nothing.
 */
export async function saveSuccessor(
  store: Store,
  saved: NewModelVersion,
  succession: Pick<Succession, 'nowMs' | 'reason' | 'statements' | 'succeeds'>,
): Promise<boolean> {
  const { name, version } = saved;
  const markChanged = store.markChanged(MODELS_TOPIC, succession.nowMs);
  return await store.call(saveSuccessorProcedure, { ...succession, saved, name, version, markChanged });
}

/**
 * Serves the version again that was served before the present one; returns both. Throws `conflict` if it would lead to another
 * than the expected version.
 */
export async function rollBackModel(store: Store, rollback: Omit<Rollback, 'markChanged'>): Promise<RolledBack> {
  return await store.call(rollbackProcedure, {
    ...rollback,
    markChanged: store.markChanged(MODELS_TOPIC, rollback.nowMs),
  });
}

interface Pruning {
  readonly name: string;
  readonly keep: number;
}

/** Serializable, like promotions: otherwise a promotion could serve a version that a concurrent pruning removes. */
export const pruneProcedure: Procedure<Pruning, number[]> = procedure(
  import.meta.url,
  'pruneProcedure',
  async (tx, { name, keep }) => (await tx.run(pruneVersionsSql, [name, keep])).map(({ version }) => version),
);

/** Removes all but the newest `keep` versions, the served one, and those that a rollback may serve again. */
export async function pruneModelVersions(store: Store, name: string, keep: number): Promise<number[]> {
  return await store.call(pruneProcedure, { name, keep });
}

function unknownVersion(name: string, version: number): Failure {
  return new Failure('not_found', `Cannot find version ${version} of the model "${name}"`);
}
