/**
 * Rotates refresh tokens: a used one revokes its family; within a short grace it gets the same answer again, in case the first was
 * lost. What is guaranteed, under any number of processes and through a crash at any point:
 *  - a refresh token has at most one successor: rotation is one conditional UPDATE, and (family, generation) is unique;
 *  - within the grace a rotated token answers with the same successor again, until the successor has itself been used. The
 *    successor is not stored: the row has a seed, and only the seed and the old token together yield it;
 *  - a rotated token that is presented after the grace, or after its successor has itself been used, revokes its whole family
 *    (RFC 9700 §4.14.2), however often the family was refreshed since. This holds until the old token itself expires, and only
 *    if client, authentication and scope are right; otherwise the request is just refused.
 * The words family, grant and generation are explained in token-store.ts and credential-validity-store.ts.
 */
import { type Procedure, procedure, statement, type Transaction } from '../../database/store.ts';
import { isStillValid, joinPersonAndConsent } from '../accounts/credential-validity-store.ts';
import { formatScope, narrowScopes, readScopes } from '../applications/scope.ts';
import { deleteOldAccessTokens } from './surplus-tokens-store.ts';
import { insertAccessSql, insertRefreshSql, type NewToken, revokeFamily } from './token-store.ts';

export interface Rotation {
  readonly tokenHash: Uint8Array;
  readonly nowMs: number;
  readonly graceMs: number;
  /** The client that authenticated or only sent its id; undefined if the request names none. */
  readonly clientId: string | undefined;
  readonly isAuthenticated: boolean;
  /** The scope parameter as it was sent. */
  readonly askedScope: string | undefined;
  readonly access: NewToken;
  readonly refresh: NewToken;
  /** The new pair is derived from this seed and the old token (`deriveSuccessor`). */
  readonly successorSeed: Uint8Array;
  readonly address: string | undefined;
}

export type RotationOutcome =
  | { readonly kind: 'rotated'; readonly scope: string }
  | { readonly kind: 'repeated'; readonly scope: string; readonly successorSeed: Uint8Array }
  | { readonly kind: 'refused' | 'unauthenticated' | 'not_allowed' | 'scope_too_wide' };

interface RefreshRow {
  readonly family_id: string;
  readonly generation: number;
  readonly expires_at_ms: number;
  readonly rotated_at_ms: number | null;
  readonly successor_seed: Uint8Array | null;
  readonly client_id: string;
  readonly scope: string;
  readonly family_expires_at_ms: number;
  readonly authenticated_refresh: number;
  readonly grant_types: string;
}

// No row if the family is revoked, its application is deleted or disabled, or its person or consent is no longer valid.
const liveRefreshSql = statement<RefreshRow>(
  'live-refresh-token',
  `SELECT r.family_id, r.generation, r.expires_at_ms, r.rotated_at_ms, r.successor_seed, f.client_id, f.scope,
     f.expires_at_ms AS family_expires_at_ms, a.authenticated_refresh, a.grant_types
   FROM refresh_tokens r
   JOIN token_families f ON f.family_id = r.family_id
   JOIN applications a ON a.client_id = f.client_id
   ${joinPersonAndConsent('f')}
   WHERE r.token_hash = $1 AND f.revoked_at_ms IS NULL AND a.disabled_at_ms IS NULL AND ${isStillValid('f')}`,
);
const markRotatedSql = statement<{ family_id: string }>(
  'mark-refresh-token-rotated',
  `UPDATE refresh_tokens SET rotated_at_ms = $2, successor_seed = $3
   WHERE token_hash = $1 AND rotated_at_ms IS NULL RETURNING family_id`,
);
const generationUnusedSql = statement<{ generation: number }>(
  'unused-generation',
  'SELECT generation FROM refresh_tokens WHERE family_id = $1 AND generation = $2 AND rotated_at_ms IS NULL',
);

/** Refreshes with rotation (RFC 6749 §6). The outcome decides the response; all its changes commit in this transaction. */
export const rotateRefresh: Procedure<Rotation, RotationOutcome> = procedure(
  import.meta.url,
  'rotateRefresh',
  async (transaction, rotation) => {
    const [row] = await transaction.run(liveRefreshSql, [rotation.tokenHash]);
    if (row === undefined || (rotation.clientId ?? row.client_id) !== row.client_id) return { kind: 'refused' };
    if (!row.grant_types.split(' ').includes('refresh_token')) return { kind: 'not_allowed' };
    if (row.authenticated_refresh === 1 && !rotation.isAuthenticated) return { kind: 'unauthenticated' };
    if (Math.min(row.expires_at_ms, row.family_expires_at_ms) <= rotation.nowMs) return { kind: 'refused' };
    const scope = chooseScope(row.scope, rotation.askedScope);
    if (scope === undefined) return { kind: 'scope_too_wide' };
    const next = row.rotated_at_ms === null ? rotate : repeatOrRevoke;
    return next(transaction, { ...row, scope }, rotation);
  },
);

function chooseScope(granted: string, asked: string | undefined): string | undefined {
  if (asked === undefined) return granted;
  const scopes = narrowScopes(asked, readScopes(granted));
  return scopes && formatScope(scopes);
}

/** `scope` of `row` is that of the new access token, also in `repeatOrRevoke`. */
async function rotate(transaction: Transaction, row: RefreshRow, rotation: Rotation): Promise<RotationOutcome> {
  const { tokenHash, nowMs, access, refresh } = rotation;
  const won = await transaction.run(markRotatedSql, [tokenHash, nowMs, rotation.successorSeed]);
  if (won.length === 0) return { kind: 'refused' };
  const refreshExpiresAtMs = Math.min(refresh.expiresAtMs, row.family_expires_at_ms);
  const { family_id: familyId, scope } = row;
  const generation = row.generation + 1;
  await transaction.run(insertRefreshSql, [refresh.hash, familyId, generation, nowMs, refreshExpiresAtMs]);
  await transaction.run(insertAccessSql, [access.hash, familyId, scope, nowMs, access.expiresAtMs]);
  await deleteOldAccessTokens(transaction, { familyId, generation, nowMs });
  return { kind: 'rotated', scope };
}

/**
 * Repeats the answer within the grace, or revokes the family. The time since the rotation counts as an absolute value, so that a
 * clock that was set back does not stretch the grace. With `graceMs` 0 there is no grace, even in the same millisecond.
 */
async function repeatOrRevoke(transaction: Transaction, row: RefreshRow, rotation: Rotation): Promise<RotationOutcome> {
  const inGrace = Math.abs(rotation.nowMs - (row.rotated_at_ms ?? 0)) < rotation.graceMs;
  if (inGrace && row.successor_seed !== null) {
    const unused = await transaction.run(generationUnusedSql, [row.family_id, row.generation + 1]);
    if (unused.length > 0) return { kind: 'repeated', scope: row.scope, successorSeed: row.successor_seed };
  }
  await revokeFamily(transaction, row.family_id, { kind: 'refresh_reused', ...rotation });
  return { kind: 'refused' };
}
