/** Stores webhooks: inserts, deletes and finds them. */
import {
  type BoundStatement,
  conditionalProcedure,
  type Procedure,
  procedure,
  type SqlValue,
  type Store,
  statement,
} from '../../database/store.ts';
import { Failure, isFailure } from '../../errors.ts';
import type { EventKind } from '../events/event-kind.ts';
import type { EncryptedSecrets, EncryptionType, Hook, ProfileName } from './hook.ts';

/** Columns of `hooks` as they are read. */
export interface HookRow extends EncryptedSecrets {
  readonly id: number;
  readonly repository_id: number;
  readonly url: string;
  readonly encryption_type: number;
  readonly profile: string;
  readonly push_events: number;
  readonly tag_push_events: number;
  readonly issues_events: number;
  readonly note_events: number;
  readonly merge_requests_events: number;
  readonly result: string | null;
  readonly result_code: number;
  readonly created_at_ms: number;
  readonly disabled_at_ms: number | null;
  readonly disabled_reason: string | null;
}

export interface StoredHook {
  readonly hook: Hook;
  readonly encrypted: EncryptedSecrets;
}

export interface NewHook {
  readonly id: number;
  readonly repositoryId: number;
  readonly url: string;
  readonly encryptionType: EncryptionType;
  readonly profile: ProfileName;
  readonly events: Readonly<Record<EventKind, boolean>>;
  readonly secret: Uint8Array | null;
  readonly nowMs: number;
}

export const HOOK_COLUMNS = `id, repository_id, url, encryption_type, profile, secret, previous_secret, previous_until_ms,
  push_events, tag_push_events, issues_events, note_events, merge_requests_events, result, result_code, created_at_ms,
  disabled_at_ms, disabled_reason`;

const hookByIdSql = statement<HookRow>('hook-by-id', `SELECT ${HOOK_COLUMNS} FROM hooks WHERE id = $1`);
const hookOfRepositorySql = statement<HookRow>(
  'hook-of-repository',
  `SELECT ${HOOK_COLUMNS} FROM hooks WHERE repository_id = $1 AND id = $2`,
);
const hooksOfRepositorySql = statement<HookRow>(
  'hooks-of-repository',
  `SELECT ${HOOK_COLUMNS} FROM hooks WHERE repository_id = $1 ORDER BY id LIMIT $2 OFFSET $3`,
);
const countHooksSql = statement<{ total: number }>(
  'count-hooks',
  'SELECT count(*) AS total FROM hooks WHERE repository_id = $1',
);
const insertHookSql = statement(
  'insert-hook',
  `INSERT INTO hooks (id, repository_id, url, encryption_type, profile, secret, push_events, tag_push_events,
     issues_events, note_events, merge_requests_events, result_code, created_at_ms, updated_at_ms)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, $12, $12)`,
);
const deleteHookSql = statement<{ id: number }>('delete-hook', 'DELETE FROM hooks WHERE id = $1 RETURNING id');
interface InsertInput {
  readonly repositoryId: number;
  readonly maximum: number;
  readonly parameters: readonly SqlValue[];
  readonly statements: readonly BoundStatement[];
}

/** Counts and inserts in one transaction, so that two concurrent creations cannot exceed the limit. */
export const insertHookWithin: Procedure<InsertInput, boolean> = procedure(
  import.meta.url,
  'insertHookWithin',
  async (transaction, { repositoryId, maximum, parameters, statements }) => {
    const [count] = await transaction.run(countHooksSql, [repositoryId]);
    if ((count?.total ?? 0) >= maximum) return false;
    await transaction.run(insertHookSql, parameters);
    await transaction.runAll(statements);
    return true;
  },
);

/** Statements of the same transaction, which commit only if the hook is changed or deleted. */
export interface UpdateStatements {
  /** Changes of the hook queue. */
  readonly ofHookQueue: readonly BoundStatement[];
  readonly records: readonly BoundStatement[];
}

/** Deletes a hook. Of two concurrent deletions only one finds it, so `records` are written once. */
export const deleteHookOnce: Procedure<UpdateStatements & { readonly id: number }, void> = conditionalProcedure(
  import.meta.url,
  'deleteHookOnce',
  async (transaction, { id, ofHookQueue, records }) => {
    await transaction.runAll(ofHookQueue);
    if ((await transaction.run(deleteHookSql, [id])).length === 0) throw refuseStale();
    await transaction.runAll(records);
  },
);

/** Thrown within a transaction, which is then rolled back, so that the hook queue stays as it is. */
export function refuseStale(): Failure {
  return new Failure('conflict', 'Cannot change the webhook: it was changed or deleted meanwhile', { isStale: true });
}

/** Undefined when the hook was changed or deleted meanwhile. */
export async function ignoreStale<Result>(call: Promise<Result>): Promise<Result | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isFailure(error) && error.details.isStale === true) return undefined;
    throw error;
  }
}

export async function findHookOfRepository(
  store: Store,
  repositoryId: number,
  id: number,
): Promise<StoredHook | undefined> {
  return first(await store.read(hookOfRepositorySql, [repositoryId, id]));
}

export async function findHookById(store: Store, id: number): Promise<StoredHook | undefined> {
  return first(await store.read(hookByIdSql, [id]));
}

export async function listHooks(
  store: Store,
  repositoryId: number,
  { size, offset }: { readonly size: number; readonly offset: number },
): Promise<StoredHook[]> {
  return (await store.read(hooksOfRepositorySql, [repositoryId, size, offset])).map(toStored);
}

export async function countHooks(store: Store, repositoryId: number): Promise<number> {
  return (await store.read(countHooksSql, [repositoryId]))[0]?.total ?? 0;
}

/** False when the repository has `maximum` hooks already. `statements` commit with it. */
export async function insertHook(
  store: Store,
  hook: NewHook,
  { maximum, statements }: Pick<InsertInput, 'maximum' | 'statements'>,
): Promise<boolean> {
  const { repositoryId } = hook;
  return await store.call(insertHookWithin, { repositoryId, maximum, parameters: toInsert(hook), statements });
}

/** `statements` commit with it. */
export async function removeHook(store: Store, id: number, statements: UpdateStatements): Promise<void> {
  await ignoreStale(store.call(deleteHookOnce, { id, ...statements }));
}

function toInsert(hook: NewHook): SqlValue[] {
  return [
    hook.id,
    hook.repositoryId,
    hook.url,
    hook.encryptionType,
    hook.profile,
    hook.secret,
    toFlag(hook.events.push),
    toFlag(hook.events.tag_push),
    toFlag(hook.events.issue),
    toFlag(hook.events.note),
    toFlag(hook.events.merge_request),
    hook.nowMs,
  ];
}

export function toFlag(value: boolean): number {
  return value ? 1 : 0;
}

export function first(rows: readonly HookRow[]): StoredHook | undefined {
  return rows[0] && toStored(rows[0]);
}

function toStored(row: HookRow): StoredHook {
  const { secret, previous_secret, previous_until_ms } = row;
  return { hook: toHook(row), encrypted: { secret, previous_secret, previous_until_ms } };
}

export function toHook(row: HookRow): Hook {
  return {
    id: row.id,
    repositoryId: row.repository_id,
    url: row.url,
    encryptionType: row.encryption_type === 1 ? 1 : 0,
    profile: row.profile as ProfileName,
    events: {
      push: row.push_events === 1,
      tag_push: row.tag_push_events === 1,
      issue: row.issues_events === 1,
      note: row.note_events === 1,
      merge_request: row.merge_requests_events === 1,
    },
    createdAtMs: row.created_at_ms,
    disabledAtMs: row.disabled_at_ms,
    disabledReason: row.disabled_reason,
    result: row.result,
    resultCode: row.result_code,
  };
}
