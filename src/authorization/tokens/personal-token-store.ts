/** Stores personal access tokens as digests, finds the live ones, and revokes a token with those that were created with it. */
import { type BoundStatement, type Procedure, procedure, type Store, statement } from '../../database/store.ts';
import { MAX_SKEW_MS } from '../../steady-clock.ts';
import { type Access, checkRole } from '../accounts/access-store.ts';
import type { RecordedChange } from '../accounts/audit-store.ts';
import { readScopes, type Scope } from '../applications/scope.ts';

export interface PersonalToken {
  readonly tokenId: string;
  readonly userId: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** `owner/name` in lower case; undefined for a token without such a limit. */
  readonly repositories?: readonly string[] | undefined;
  /** The last four characters. */
  readonly hint: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | undefined;
  readonly lastUsedAtMs: number | undefined;
}

export interface LivePersonalToken extends PersonalToken {
  readonly login: string;
  readonly isAdmin: boolean;
}

interface PersonalTokenRow {
  readonly token_id: string;
  readonly user_id: string;
  readonly name: string;
  readonly scope: string;
  readonly repositories: string | null;
  readonly hint: string;
  readonly created_at_ms: number;
  readonly expires_at_ms: number | null;
  readonly last_used_at_ms: number | null;
}

interface LiveRow extends PersonalTokenRow {
  readonly login: string;
  readonly is_admin: number;
}

const COLUMNS = `p.token_id, p.user_id, p.name, p.scope, p.repositories, p.hint, p.created_at_ms, p.expires_at_ms, p.last_used_at_ms`;

const livePersonalTokenSql = statement<LiveRow>(
  'live-personal-token',
  `SELECT ${COLUMNS}, u.login, u.is_admin FROM personal_tokens p JOIN users u ON u.id = p.user_id
   WHERE p.token_hash = $1 AND u.disabled_at_ms IS NULL`,
);
const personalTokensOfSql = statement<PersonalTokenRow>(
  'personal-tokens-of-user',
  `SELECT ${COLUMNS} FROM personal_tokens p WHERE p.user_id = $1 ORDER BY p.created_at_ms DESC, p.token_id`,
);
const personalTokenByIdSql = statement<PersonalTokenRow>(
  'personal-token-by-id',
  `SELECT ${COLUMNS} FROM personal_tokens p WHERE p.user_id = $1 AND p.token_id = $2`,
);
// Expired tokens do not count: they allow nothing, and the sweeper deletes them.
const countLiveOfUserSql = statement<{ total: number }>(
  'count-live-personal-tokens-of-user',
  `SELECT COUNT(*) AS total FROM personal_tokens
   WHERE user_id = $1 AND (expires_at_ms IS NULL OR expires_at_ms > $2)`,
);
const insertPersonalTokenSql = statement(
  'insert-personal-token',
  `INSERT INTO personal_tokens (token_id, token_hash, user_id, name, scope, hint, created_at_ms, expires_at_ms, parent_id,
     repositories) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
);
// Locks the row: a change in progress, such as a new password that deletes the tokens, commits first and is seen here.
const lockOwnerSql = statement<{ id: string }>(
  'lock-owner-of-personal-token',
  'UPDATE users SET epoch = epoch WHERE id = $1 AND epoch = COALESCE($2, epoch) RETURNING id',
);
// Deletes a token, all tokens that were created with it, and so on.
const deletePersonalTokenSql = statement<{ token_id: string }>(
  'delete-personal-token',
  `WITH RECURSIVE ended (token_id) AS (
     SELECT token_id FROM personal_tokens WHERE user_id = $1 AND token_id = $2
     UNION ALL SELECT p.token_id FROM personal_tokens p JOIN ended e ON p.parent_id = e.token_id)
   DELETE FROM personal_tokens WHERE token_id IN (SELECT token_id FROM ended) RETURNING token_id`,
);
const deletePersonalTokensSql = statement<{ token_id: string }>(
  'delete-personal-tokens-of-user',
  'DELETE FROM personal_tokens WHERE user_id = $1 RETURNING token_id',
);
const markUsedSql = statement(
  'mark-personal-token-used',
  // Of many concurrent calls, one writes the time. A time in the future was written by a wrong clock, and is replaced. The
  // subtraction is on the column, since PostgreSQL would take $2 in a sum with a constant for a 32-bit number.
  `UPDATE personal_tokens SET last_used_at_ms = $2
   WHERE token_id = $1 AND (COALESCE(last_used_at_ms, 0) <= $3 OR last_used_at_ms - ${MAX_SKEW_MS} > $2)`,
);

function toPersonalToken(row: PersonalTokenRow): PersonalToken {
  return {
    tokenId: row.token_id,
    userId: row.user_id,
    name: row.name,
    scopes: readScopes(row.scope),
    ...(row.repositories === null ? {} : { repositories: row.repositories.split(' ') }),
    hint: row.hint,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms ?? undefined,
    lastUsedAtMs: row.last_used_at_ms ?? undefined,
  };
}

export async function findLivePersonalToken(
  store: Store,
  hash: Uint8Array,
  nowMs: number,
): Promise<LivePersonalToken | undefined> {
  const [row] = await store.readCached(livePersonalTokenSql, [hash]);
  // The expiry is checked here and not in SQL: the row may come from the read cache.
  if (row === undefined || (row.expires_at_ms ?? Infinity) <= nowMs) return undefined;
  return { ...toPersonalToken(row), login: row.login, isAdmin: row.is_admin === 1 };
}

/** Newest first, with expired ones until they are swept. */
export async function listPersonalTokens(store: Store, userId: string): Promise<PersonalToken[]> {
  return (await store.read(personalTokensOfSql, [userId])).map(toPersonalToken);
}

export async function findPersonalToken(
  store: Store,
  userId: string,
  tokenId: string,
): Promise<PersonalToken | undefined> {
  const [row] = await store.read(personalTokenByIdSql, [userId, tokenId]);
  return row && toPersonalToken(row);
}

/** The most unexpired tokens of one person. */
export const MAX_PERSONAL_TOKENS = 200;

export interface PersonalTokenInsert {
  readonly token: Omit<PersonalToken, 'lastUsedAtMs'>;
  readonly hash: Uint8Array;
  /** The token that creates it; undefined on a page or by command. */
  readonly parentId: string | undefined;
  /** The person's generation as read with the session that creates the token. */
  readonly credentialGeneration: number | undefined;
  readonly audit: BoundStatement;
}

/** `ended`: the session or the token that creates it has ended meanwhile. `full`: the person has `MAX_PERSONAL_TOKENS`. */
export type TokenInsertOutcome = 'inserted' | 'ended' | 'full';

/** Counts and inserts in one transaction, so that two concurrent calls cannot exceed the limit. */
export const insertPersonalTokenOnce: Procedure<PersonalTokenInsert, TokenInsertOutcome> = procedure(
  import.meta.url,
  'insertPersonalTokenOnce',
  async (transaction, { token, hash, parentId, credentialGeneration, audit }) => {
    const { tokenId, userId, name, hint, createdAtMs, expiresAtMs = null } = token;
    if ((await transaction.run(lockOwnerSql, [userId, credentialGeneration ?? null])).length === 0) return 'ended';
    if (parentId !== undefined && (await transaction.run(personalTokenByIdSql, [userId, parentId])).length === 0)
      return 'ended';
    const [count] = await transaction.run(countLiveOfUserSql, [userId, createdAtMs]);
    if ((count?.total ?? 0) >= MAX_PERSONAL_TOKENS) return 'full';
    const scope = token.scopes.join(' ');
    const repositories = token.repositories?.join(' ') ?? null;
    const values = [tokenId, hash, userId, name, scope, hint, createdAtMs, expiresAtMs, parentId ?? null, repositories];
    await transaction.run(insertPersonalTokenSql, values);
    await transaction.run(audit.statement, audit.parameters);
    return 'inserted';
  },
);

export interface PersonalTokenDeletion extends Access {
  readonly tokenId: string;
  /** Recorded only when there was something to delete. */
  readonly audit: BoundStatement;
}

/** Returns whether this user had such a token. Throws as `checkRole` does. */
export const deletePersonalTokenOnce: Procedure<PersonalTokenDeletion, boolean> = procedure(
  import.meta.url,
  'deletePersonalTokenOnce',
  async (transaction, { tokenId, audit, ...access }) => {
    await checkRole(transaction, access);
    const { userId } = access;
    const deleted = await transaction.run(deletePersonalTokenSql, [userId, tokenId]);
    if (deleted.length > 0) await transaction.run(audit.statement, audit.parameters);
    return deleted.length > 0;
  },
);

/** Deletes all personal tokens of a user, and records it if there are any. */
export function deletePersonalTokens(userId: string, audit: BoundStatement): RecordedChange {
  return { change: { statement: deletePersonalTokensSql, parameters: [userId] }, statements: [audit] };
}

/** Changes nothing if a use after `beforeMs` is recorded already. */
export async function markPersonalTokenUsed(
  store: Store,
  tokenId: string,
  { nowMs, beforeMs }: { readonly nowMs: number; readonly beforeMs: number },
): Promise<void> {
  await store.write(markUsedSql, [tokenId, nowMs, beforeMs]);
}
