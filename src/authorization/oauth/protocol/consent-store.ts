/** Stores which scopes each user allows each application, until the user revokes them. */
import { type Store, statement, type Transaction } from '../../../database/store.ts';
import { auditStatement, changeAndRecord } from '../../accounts/audit-store.ts';
import { formatScope, isWithin, readScopes, type Scope, uniteScopes } from '../../applications/scope.ts';

interface ConsentRow {
  readonly scope: string;
  readonly grant_id: string;
}

const consentOfSql = statement<ConsentRow>(
  'consent-of',
  'SELECT scope, grant_id FROM consents WHERE user_id = $1 AND client_id = $2',
);
// Counts up to a limit: the page does not need an exact large number.
const countConsentsOfSql = statement<{ people: number }>(
  'count-consents-of-client',
  'SELECT COUNT(*) AS people FROM (SELECT user_id FROM consents WHERE client_id = $1 LIMIT $2) AS few',
);
const insertConsentSql = statement(
  'insert-consent',
  `INSERT INTO consents (user_id, client_id, scope, grant_id, created_at_ms, updated_at_ms) VALUES ($1, $2, $3, $4, $5, $5)
   ON CONFLICT (user_id, client_id) DO UPDATE
     SET scope = excluded.scope, grant_id = excluded.grant_id, updated_at_ms = excluded.updated_at_ms`,
);
// For a consent that was read: if another call has deleted it since, this fails in PostgreSQL's serializable isolation, and the
// decision is made again. The statement above would insert it again, and earlier tokens would become valid again.
const updateConsentSql = statement(
  'update-consent',
  'UPDATE consents SET scope = $3, grant_id = $4, updated_at_ms = $5 WHERE user_id = $1 AND client_id = $2',
);
const deleteConsentSql = statement<{ client_id: string }>(
  'delete-consent',
  'DELETE FROM consents WHERE user_id = $1 AND client_id = $2 RETURNING client_id',
);
const consentsOfSql = statement<{
  client_id: string;
  name: string;
  homepage: string;
  scope: string;
  created_at_ms: number;
  updated_at_ms: number;
  live_tokens: number;
  last_used_at_ms: number | null;
}>(
  'consents-of-user',
  `SELECT c.client_id, a.name, a.homepage, c.scope, c.created_at_ms, c.updated_at_ms,
     (SELECT COUNT(*) FROM token_families f JOIN access_tokens t ON t.family_id = f.family_id
      WHERE f.user_id = c.user_id AND f.client_id = c.client_id AND f.revoked_at_ms IS NULL
        AND f.grant_id = c.grant_id AND f.user_epoch = u.epoch
        AND t.revoked_at_ms IS NULL AND t.expires_at_ms > $2) AS live_tokens,
     (SELECT MAX(t.issued_at_ms) FROM token_families f JOIN access_tokens t ON t.family_id = f.family_id
      WHERE f.user_id = c.user_id AND f.client_id = c.client_id) AS last_used_at_ms
   FROM consents c JOIN applications a ON a.client_id = c.client_id JOIN users u ON u.id = c.user_id
   WHERE c.user_id = $1 ORDER BY c.updated_at_ms DESC, c.client_id`,
);

/** An application that a user has allowed. */
export interface AuthorizedApplication {
  readonly clientId: string;
  readonly name: string;
  readonly homepage: string;
  readonly scopes: readonly Scope[];
  readonly firstAllowedAtMs: number;
  readonly lastAllowedAtMs: number;
  /** When the application last got a token that is still stored. */
  readonly lastUsedAtMs: number | undefined;
  readonly liveTokens: number;
}

/** The scopes that a user allows an application now. */
export interface Consent {
  readonly scopes: readonly Scope[];
  /** Codes and tokens refer to this id, and become invalid when no consent has it (credential-validity-store.ts). */
  readonly consentId: string;
}

/** Returns undefined if the user has not allowed this application anything. */
export async function findConsent(store: Store, userId: string, clientId: string): Promise<Consent | undefined> {
  const [row] = await store.read(consentOfSql, [userId, clientId]);
  return row && { scopes: readScopes(row.scope), consentId: row.grant_id };
}

/** Counts the people who have allowed this application, up to `limit`. */
export async function countPeople(store: Store, clientId: string, limit: number): Promise<number> {
  const [row] = await store.read(countConsentsOfSql, [clientId, limit]);
  return row?.people ?? 0;
}

/** A person's decision about one request. */
export interface ConsentDecision {
  readonly userId: string;
  readonly clientId: string;
  readonly asked: readonly Scope[];
  /** The scopes that the person allowed. */
  readonly allowedScopes: readonly Scope[];
  /** The id for a first consent, or for one that allows less than before. */
  readonly newConsentId: string;
  readonly nowMs: number;
}

/**
 * Adds the requested scopes that the person allowed, removes those that the person did not, and keeps scopes that were not
 * requested. A consent that became smaller gets a new id, so that no earlier token has more than the person allows now. Returns
 * the id. Must be called by a serializable procedure.
 */
export async function saveConsentIn(transaction: Transaction, decision: ConsentDecision): Promise<string> {
  const { userId, clientId, asked, allowedScopes, nowMs } = decision;
  const [row] = await transaction.run(consentOfSql, [userId, clientId]);
  const before = row === undefined ? [] : readScopes(row.scope);
  const untouched = before.filter((scope) => !asked.includes(scope));
  const scopes = uniteScopes(untouched, allowedScopes);
  const consentId = row !== undefined && isWithin(before, scopes) ? row.grant_id : decision.newConsentId;
  const saveSql = row === undefined ? insertConsentSql : updateConsentSql;
  await transaction.run(saveSql, [userId, clientId, formatScope(scopes), consentId, nowMs]);
  return consentId;
}

export async function listAuthorizedApplications(
  store: Store,
  userId: string,
  nowMs: number,
): Promise<AuthorizedApplication[]> {
  const rows = await store.read(consentsOfSql, [userId, nowMs]);
  return rows.map((row) => ({
    clientId: row.client_id,
    name: row.name,
    homepage: row.homepage,
    scopes: readScopes(row.scope),
    firstAllowedAtMs: row.created_at_ms,
    lastAllowedAtMs: row.updated_at_ms,
    lastUsedAtMs: row.last_used_at_ms ?? undefined,
    liveTokens: row.live_tokens,
  }));
}

/** Revokes a user's consent to an application, which ends its codes and tokens. Records nothing if there was no consent. */
export async function revokeConsent(
  store: Store,
  {
    userId,
    clientId,
    nowMs,
    address,
  }: { userId: string; clientId: string; nowMs: number; address?: string | undefined },
): Promise<void> {
  await store.call(changeAndRecord, {
    change: { statement: deleteConsentSql, parameters: [userId, clientId] },
    statements: [auditStatement({ kind: 'consent_revoked', userId, clientId, address }, nowMs)],
  });
}
