/**
 * Stores access and refresh tokens as digests, and the families that are revoked together. A family has all tokens that come
 * from one authorization by a user (RFC 6749 calls it a grant); its refresh tokens are numbered by `generation`
 * (rotation-store.ts). `generation`, `epoch` and `grant_id` are explained in accounts/credential-validity-store.ts.
 */
import {
  type BoundStatement,
  type Procedure,
  procedure,
  type Store,
  statement,
  type Transaction,
} from '../../database/store.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { isStillValid, joinPersonAndConsent } from '../accounts/credential-validity-store.ts';

export interface NewToken {
  readonly hash: Uint8Array;
  readonly expiresAtMs: number;
}

/** The person of the tokens, and the condition under which they are valid (credential-validity-store.ts). */
export interface PersonOrigin {
  readonly userId: string;
  readonly credentialGeneration: number;
  readonly consentId: string;
}

export interface NewFamily {
  readonly familyId: string;
  readonly clientId: string;
  /** Undefined for tokens that an application gets for itself. */
  readonly person: PersonOrigin | undefined;
  readonly scope: string;
  readonly authTimeMs: number;
  readonly nowMs: number;
  readonly expiresAtMs: number;
}

export interface NewTokens {
  readonly access: NewToken;
  readonly refresh?: NewToken | undefined;
}

const insertFamilySql = statement(
  'insert-token-family',
  `INSERT INTO token_families (family_id, client_id, user_id, user_epoch, grant_id, scope, auth_time_ms, created_at_ms,
     expires_at_ms)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
);
export const insertRefreshSql = statement(
  'insert-refresh-token',
  `INSERT INTO refresh_tokens (token_hash, family_id, generation, issued_at_ms, expires_at_ms) VALUES ($1, $2, $3, $4, $5)`,
);
export const insertAccessSql = statement(
  'insert-access-token',
  'INSERT INTO access_tokens (token_hash, family_id, scope, issued_at_ms, expires_at_ms) VALUES ($1, $2, $3, $4, $5)',
);

/** Inserts a family with its first tokens. The refresh token expires no later than the family. */
export function insertFamilyStatements(family: NewFamily, tokens: NewTokens): BoundStatement[] {
  const { familyId, clientId, person, scope, authTimeMs, nowMs, expiresAtMs } = family;
  const { access, refresh } = tokens;
  const origin = person === undefined ? [null, 0, ''] : [person.userId, person.credentialGeneration, person.consentId];
  return [
    {
      statement: insertFamilySql,
      parameters: [familyId, clientId, ...origin, scope, authTimeMs, nowMs, expiresAtMs],
    },
    { statement: insertAccessSql, parameters: [access.hash, familyId, scope, nowMs, access.expiresAtMs] },
    ...(refresh === undefined
      ? []
      : [
          {
            statement: insertRefreshSql,
            parameters: [refresh.hash, familyId, 0, nowMs, Math.min(refresh.expiresAtMs, expiresAtMs)],
          },
        ]),
  ];
}

const revokeFamilyByIdSql = statement<{ family_id: string; client_id: string; user_id: string | null }>(
  'revoke-family',
  `UPDATE token_families SET revoked_at_ms = $2 WHERE family_id = $1 AND revoked_at_ms IS NULL
   RETURNING family_id, client_id, user_id`,
);

export interface RevocationReason {
  readonly kind: 'refresh_reused' | 'code_replayed' | 'token_revoked';
  readonly nowMs: number;
  readonly address: string | undefined;
}

/** Returns false, and records nothing, if the family is revoked already. */
export async function revokeFamily(
  transaction: Transaction,
  familyId: string,
  reason: RevocationReason,
): Promise<boolean> {
  const [family] = await transaction.run(revokeFamilyByIdSql, [familyId, reason.nowMs]);
  if (family === undefined) return false;
  const { kind, address } = reason;
  const event = { kind, userId: family.user_id ?? undefined, clientId: family.client_id, address };
  await transaction.runAll([auditStatement(event, reason.nowMs)]);
  return true;
}

export interface Revocation {
  readonly tokenHash: Uint8Array;
  readonly kind: 'access' | 'refresh';
  /** The token is revoked only if it belongs to this client. */
  readonly clientId: string;
  readonly nowMs: number;
  readonly address: string | undefined;
}

const familyOfRefreshSql = statement<{ family_id: string }>(
  'family-of-refresh-token',
  `SELECT r.family_id FROM refresh_tokens r JOIN token_families f ON f.family_id = r.family_id
   WHERE r.token_hash = $1 AND f.client_id = $2`,
);
const revokeAccessSql = statement<{ family_id: string }>(
  'revoke-access-token',
  `UPDATE access_tokens SET revoked_at_ms = $3 WHERE token_hash = $1 AND revoked_at_ms IS NULL
     AND family_id IN (SELECT family_id FROM token_families WHERE client_id = $2)
   RETURNING family_id`,
);
const familyOwnerSql = statement<{ user_id: string | null }>(
  'family-owner',
  'SELECT user_id FROM token_families WHERE family_id = $1',
);

/** Revokes a refresh token with its family, or one access token (RFC 7009 §2.1). Returns false if nothing was revoked. */
export const revokeToken: Procedure<Revocation, boolean> = procedure(
  import.meta.url,
  'revokeToken',
  async (transaction, input) => {
    const { tokenHash, clientId, nowMs, address } = input;
    if (input.kind === 'refresh') {
      const [found] = await transaction.run(familyOfRefreshSql, [tokenHash, clientId]);
      if (found === undefined) return false;
      return await revokeFamily(transaction, found.family_id, { kind: 'token_revoked', nowMs, address });
    }
    const [revoked] = await transaction.run(revokeAccessSql, [tokenHash, clientId, nowMs]);
    if (revoked === undefined) return false;
    const [owner] = await transaction.run(familyOwnerSql, [revoked.family_id]);
    const event = { kind: 'token_revoked' as const, userId: owner?.user_id ?? undefined, clientId, address };
    await transaction.runAll([auditStatement(event, nowMs)]);
    return true;
  },
);

/** A valid token, and the client and person for whom it acts. */
export interface LiveToken {
  readonly kind: 'access' | 'refresh';
  readonly clientId: string;
  readonly scope: string;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  readonly familyId: string;
  /** Undefined for a token that an application got for itself. */
  readonly user: { readonly id: string; readonly login: string; readonly isAdmin: boolean } | undefined;
}

interface LiveTokenRow {
  readonly family_id: string;
  readonly client_id: string;
  readonly scope: string;
  readonly issued_at_ms: number;
  readonly expires_at_ms: number;
  readonly user_id: string | null;
  readonly login: string | null;
  readonly is_admin: number | null;
}

// A token that an application got for itself needs an enabled owner: a disabled person must not keep access through it.
const IS_OWNER_ENABLED = 'NOT EXISTS (SELECT 1 FROM users o WHERE o.id = a.owner_id AND o.disabled_at_ms IS NOT NULL)';
// One point read over five primary keys, so that whatever ends or stops the token counts from the next call on, on every
// process. The time is no parameter, so that the row can come from the read cache; the expiry is checked at each use.
const liveAccessSql = statement<LiveTokenRow>(
  'live-access-token',
  `SELECT t.family_id, f.client_id, t.scope, t.issued_at_ms, t.expires_at_ms, f.user_id, u.login, u.is_admin
   FROM access_tokens t
   JOIN token_families f ON f.family_id = t.family_id
   JOIN applications a ON a.client_id = f.client_id
   ${joinPersonAndConsent('f', 'LEFT')}
   WHERE t.token_hash = $1 AND t.revoked_at_ms IS NULL AND f.revoked_at_ms IS NULL
     AND a.disabled_at_ms IS NULL
     AND CASE WHEN f.user_id IS NULL THEN ${IS_OWNER_ENABLED} ELSE u.id IS NOT NULL AND ${isStillValid('f')} END`,
);
// A refresh token of an earlier release may expire later than its family; the earlier time counts.
const unusedRefreshSql = statement<LiveTokenRow>(
  'unused-refresh-token',
  `SELECT r.family_id, f.client_id, f.scope, r.issued_at_ms, f.user_id, u.login, u.is_admin,
     CASE WHEN r.expires_at_ms < f.expires_at_ms THEN r.expires_at_ms ELSE f.expires_at_ms END AS expires_at_ms
   FROM refresh_tokens r
   JOIN token_families f ON f.family_id = r.family_id
   JOIN applications a ON a.client_id = f.client_id
   ${joinPersonAndConsent('f')}
   WHERE r.token_hash = $1 AND r.rotated_at_ms IS NULL AND f.revoked_at_ms IS NULL
     AND a.disabled_at_ms IS NULL AND ${isStillValid('f')}`,
);

export async function findLiveToken(
  store: Store,
  kind: 'access' | 'refresh',
  { hash, nowMs }: { readonly hash: Uint8Array; readonly nowMs: number },
): Promise<LiveToken | undefined> {
  const [row] = await store.readCached(kind === 'access' ? liveAccessSql : unusedRefreshSql, [hash]);
  return row !== undefined && row.expires_at_ms > nowMs ? toLiveToken(row, kind) : undefined;
}

/** Finds the access token of a repeated response, which may have expired since. */
export async function findAccessTokenOfAnyAge(store: Store, hash: Uint8Array): Promise<LiveToken | undefined> {
  return findLiveToken(store, 'access', { hash, nowMs: Number.NEGATIVE_INFINITY });
}

function toLiveToken(row: LiveTokenRow, kind: 'access' | 'refresh'): LiveToken {
  const user =
    row.user_id === null ? undefined : { id: row.user_id, login: row.login ?? '', isAdmin: row.is_admin === 1 };
  return {
    kind,
    clientId: row.client_id,
    scope: row.scope,
    issuedAtMs: row.issued_at_ms,
    expiresAtMs: row.expires_at_ms,
    familyId: row.family_id,
    user,
  };
}
