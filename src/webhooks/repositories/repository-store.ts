/** Stores repositories: inserts, removes, lists and finds them. */
import {
  type BoundStatement,
  conditionalProcedure,
  type Procedure,
  procedure,
  type SqlValue,
  type Store,
  statement,
} from '../../database/store.ts';
import type { Repository } from './repository.ts';

export interface RepositoryRow {
  readonly id: number;
  readonly owner_kind: string;
  readonly owner_id: string;
  readonly owner_login: string;
  readonly path: string;
  readonly name: string;
  readonly description: string;
  readonly is_private: number;
  readonly default_branch: string;
  readonly web_url: string;
  readonly http_url: string;
  readonly ssh_url: string;
  readonly created_at_ms: number;
  readonly updated_at_ms: number;
}

export const COLUMNS = `id, owner_kind, owner_id, owner_login, path, name, description, is_private, default_branch, web_url,
  http_url, ssh_url, created_at_ms, updated_at_ms`;

const insertRepositorySql = statement<{ id: number }>(
  'insert-repository',
  `INSERT INTO repositories (${COLUMNS}, path_key)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
   ON CONFLICT (owner_id, path_key) DO NOTHING RETURNING id`,
);
const repositoryByPathSql = statement<RepositoryRow>(
  'repository-by-path',
  `SELECT ${COLUMNS} FROM repositories WHERE owner_id = $1 AND path_key = $2`,
);
const repositoryByIdSql = statement<RepositoryRow>(
  'repository-by-id',
  `SELECT ${COLUMNS} FROM repositories WHERE id = $1`,
);
const repositoriesOfOwnerSql = statement<RepositoryRow>(
  'repositories-of-owner',
  `SELECT ${COLUMNS} FROM repositories WHERE owner_id = $1 ORDER BY id LIMIT $2 OFFSET $3`,
);
const countOfOwnerSql = statement<{ total: number }>(
  'count-repositories-of-owner',
  'SELECT count(*) AS total FROM repositories WHERE owner_id = $1',
);
const hooksOfRepositorySql = statement<{ id: number }>(
  'hook-ids-of-repository',
  'SELECT id FROM hooks WHERE repository_id = $1 ORDER BY id',
);
// Locks the row like a deletion, since a unique key contains `path_key`: it waits for transactions that insert events, hooks and
// bridges, which lock the row for their foreign keys. Hook queues are locked only after it, as in the intake.
const lockRepositorySql = statement<{ id: number }>(
  'lock-repository',
  "UPDATE repositories SET path_key = path_key || '/deleted' WHERE id = $1 RETURNING id",
);
// Restores the row; the lock is held until the commit.
const unlockRepositorySql = statement(
  'unlock-repository',
  "UPDATE repositories SET path_key = REPLACE(path_key, '/deleted', '') WHERE id = $1",
);
const deleteRepositorySql = statement('delete-repository', 'DELETE FROM repositories WHERE id = $1');
const keysOfRepositorySql = statement<{ idempotency_key: string }>(
  'event-keys-of-repository',
  'SELECT idempotency_key FROM event_keys WHERE repository_id = $1 LIMIT $2',
);
const deleteKeySql = statement(
  'delete-event-key',
  'DELETE FROM event_keys WHERE repository_id = $1 AND idempotency_key = $2',
);

interface InsertInput {
  readonly ownerId: string;
  readonly maximum: number;
  readonly parameters: readonly SqlValue[];
  readonly statements: readonly BoundStatement[];
}

/** `taken`: the owner has a repository of that path, in any case of letters. `full`: the owner has as many as allowed. */
export type InsertOutcome = 'inserted' | 'taken' | 'full';

/** Counts and inserts in one transaction, so that two concurrent creations cannot exceed the limit. */
export const insertRepositoryOnce: Procedure<InsertInput, InsertOutcome> = procedure(
  import.meta.url,
  'insertRepositoryOnce',
  async (transaction, { ownerId, maximum, parameters, statements }) => {
    const [count] = await transaction.run(countOfOwnerSql, [ownerId]);
    if ((count?.total ?? 0) >= maximum) return 'full';
    const inserted = await transaction.run(insertRepositorySql, parameters);
    if (inserted.length === 0) return 'taken';
    await transaction.runAll(statements);
    return 'inserted';
  },
);

interface RemovalInput {
  readonly id: number;
  /** The statements of each hook, in ascending order of hooks. */
  readonly ofHooks: ReadonlyMap<number, readonly BoundStatement[]>;
  readonly statements: readonly BoundStatement[];
}

type RemovalOutcome = 'removed' | 'absent' | 'other hooks';

/** Removes a repository. Of two concurrent removals only one finds it. Nothing changes if its hooks are not those of the input. */
export const removeRepositoryOnce: Procedure<RemovalInput, RemovalOutcome> = conditionalProcedure(
  import.meta.url,
  'removeRepositoryOnce',
  async (transaction, { id, ofHooks, statements }) => {
    if ((await transaction.run(lockRepositorySql, [id])).length === 0) return 'absent';
    const hooks = await transaction.run(hooksOfRepositorySql, [id]);
    if (hooks.length !== ofHooks.size || hooks.some((hook) => !ofHooks.has(hook.id))) {
      await transaction.run(unlockRepositorySql, [id]);
      return 'other hooks';
    }
    // Its hooks, its last events and its bridge secrets are deleted by their foreign keys.
    const deletion = { statement: deleteRepositorySql, parameters: [id] };
    await transaction.runAll([...[...ofHooks.values()].flat(), ...statements, deletion]);
    return 'removed';
  },
);

export interface RemovalStatements {
  readonly ofHook: (hookId: number) => readonly BoundStatement[];
  readonly statements: readonly BoundStatement[];
}

/** `maximum`: how many repositories the owner may have. `statements` commit in the same transaction. */
export async function insertRepository(
  store: Store,
  repository: Repository,
  { maximum, statements }: Pick<InsertInput, 'maximum' | 'statements'>,
): Promise<InsertOutcome> {
  const { ownerId } = repository;
  return await store.call(insertRepositoryOnce, { ownerId, maximum, parameters: toParameters(repository), statements });
}

export async function findRepositoryByPath(
  store: Pick<Store, 'readCached'>,
  ownerId: string,
  path: string,
): Promise<Repository | undefined> {
  return toRepository(await store.readCached(repositoryByPathSql, [ownerId, toKey(path)]));
}

export async function findRepositoryById(store: Store, id: number): Promise<Repository | undefined> {
  return toRepository(await store.read(repositoryByIdSql, [id]));
}

export async function listRepositoriesOfOwner(
  store: Store,
  ownerId: string,
  { size, offset }: { readonly size: number; readonly offset: number },
): Promise<Repository[]> {
  return (await store.read(repositoriesOfOwnerSql, [ownerId, size, offset])).map(fromRow);
}

export async function countRepositoriesOfOwner(store: Store, ownerId: string): Promise<number> {
  return (await store.read(countOfOwnerSql, [ownerId]))[0]?.total ?? 0;
}

/**
 * Deletes a repository with its hooks and the events that are left. `ofHook` returns the other changes for each hook; `statements` commit
 * in the same transaction.
 */
export async function removeRepository(
  store: Store,
  id: number,
  { ofHook, statements }: RemovalStatements,
): Promise<void> {
  let outcome: RemovalOutcome;
  do {
    const hooks = await store.read(hooksOfRepositorySql, [id]);
    const ofHooks = new Map(hooks.map((hook) => [hook.id, ofHook(hook.id)]));
    outcome = await store.call(removeRepositoryOnce, { id, ofHooks, statements });
  } while (outcome === 'other hooks');
  await forgetKeys(store, id);
}

const MAX_FORGOTTEN_KEYS = 100;

/**
 * Deletes some idempotency keys; the others expire within a day, and no other repository gets this id. Each key is deleted in its own
 * transaction: a commit of the intake locks several keys and then hook queues, and could deadlock with a transaction that locks more
 * than one.
 */
async function forgetKeys(store: Store, repositoryId: number): Promise<void> {
  const rows = await store.read(keysOfRepositorySql, [repositoryId, MAX_FORGOTTEN_KEYS]);
  await Promise.all(rows.map((row) => store.write(deleteKeySql, [repositoryId, row.idempotency_key])));
}

function toKey(path: string): string {
  return path.toLowerCase();
}

function toParameters(repository: Repository) {
  return [
    repository.id,
    repository.ownerKind,
    repository.ownerId,
    repository.ownerLogin,
    repository.path,
    repository.name,
    repository.description,
    repository.isPrivate ? 1 : 0,
    repository.defaultBranch,
    repository.webUrl,
    repository.httpUrl,
    repository.sshUrl,
    repository.createdAtMs,
    repository.updatedAtMs,
    toKey(repository.path),
  ];
}

function toRepository(rows: readonly RepositoryRow[]): Repository | undefined {
  return rows[0] && fromRow(rows[0]);
}

export function fromRow(row: RepositoryRow): Repository {
  return {
    id: row.id,
    ownerKind: row.owner_kind as Repository['ownerKind'],
    ownerId: row.owner_id,
    ownerLogin: row.owner_login,
    path: row.path,
    name: row.name,
    description: row.description,
    isPrivate: row.is_private === 1,
    defaultBranch: row.default_branch,
    webUrl: row.web_url,
    httpUrl: row.http_url,
    sshUrl: row.ssh_url,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
  };
}
