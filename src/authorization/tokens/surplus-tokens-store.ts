/**
 * Ends the oldest tokens of a client that requests too many, so that the number of rows is bounded. Surplus tokens are those
 * over the limit per client (and person). Honest clients rarely come near the limits.
 */
import { type BoundStatement, statement, type Transaction } from '../../database/store.ts';
import { MAX_SKEW_MS } from '../../steady-clock.ts';
import type { World } from '../../world.ts';

/** The most token families (sign-ins) of one person with one application; one more ends that refreshed longest ago. */
export const MAX_FAMILIES = 100;
/** The most tokens that an application has for itself; one more ends the oldest. */
export const MAX_OWN_TOKENS = 10_000;
/**
 * How many of the latest access tokens of a family are kept, at least. Its used refresh tokens are all kept until they expire,
 * since reuse of any ends the family; with a limit, a thief could have the stolen one deleted by refreshing often.
 */
export const ACCESS_TOKENS_KEPT = 64;

/** One call in this many, drawn at random, deletes surplus tokens: a search in each call would cost more than the call. */
const CALLS_TOGETHER = 16;
const DELETED_AT_ONCE = 1000;

export function drawsDeletion(world: Pick<World, 'random'>): boolean {
  return world.random() * CALLS_TOGETHER < 1;
}

// The family that was just created stays. Of the others, revoked ones are deleted first, then those dated in the future by a
// wrong clock; otherwise these would count as newest until that time.
const deleteFamiliesSql = statement<{ family_id: string }>(
  'delete-surplus-families',
  `DELETE FROM token_families WHERE family_id IN (
     SELECT family_id FROM (
       SELECT f.family_id, f.revoked_at_ms, COALESCE((SELECT r.issued_at_ms FROM refresh_tokens r
         WHERE r.family_id = f.family_id ORDER BY r.generation DESC LIMIT 1), f.created_at_ms) AS used_at_ms
       FROM token_families f WHERE f.user_id = $1 AND f.client_id = $2) used
     ORDER BY CASE WHEN family_id = $4 THEN 0 WHEN revoked_at_ms IS NULL THEN 1 ELSE 2 END,
       CASE WHEN used_at_ms - ${MAX_SKEW_MS} > $5 THEN 0 ELSE used_at_ms END DESC, family_id
     LIMIT ${DELETED_AT_ONCE} OFFSET $3) RETURNING family_id`,
);
const deleteRefreshTokensSql = statement(
  'delete-refresh-tokens-of-family',
  'DELETE FROM refresh_tokens WHERE family_id = $1',
);
const deleteAccessTokensSql = statement(
  'delete-access-tokens-of-family',
  'DELETE FROM access_tokens WHERE family_id = $1',
);

interface NewFamily {
  readonly clientId: string;
  /** The family that was just created. */
  readonly familyId: string;
  readonly nowMs: number;
}

/** Ends the sign-ins of a person with an application beyond `MAX_FAMILIES`. */
export async function deleteSurplusFamilies(
  transaction: Transaction,
  { userId, clientId, familyId: newest, nowMs }: NewFamily & { readonly userId: string },
): Promise<void> {
  const deleted = await transaction.run(deleteFamiliesSql, [userId, clientId, MAX_FAMILIES, newest, nowMs]);
  await transaction.runAll(
    deleted.flatMap(({ family_id: familyId }) =>
      [deleteRefreshTokensSql, deleteAccessTokensSql].map((each) => ({ statement: each, parameters: [familyId] })),
    ),
  );
}

const ownSurplus = `SELECT family_id FROM token_families WHERE client_id = $1 AND user_id IS NULL
  ORDER BY CASE WHEN family_id = $3 THEN 0 ELSE 1 END,
    CASE WHEN created_at_ms - ${MAX_SKEW_MS} > $4 THEN 0 ELSE created_at_ms END DESC, family_id LIMIT ${DELETED_AT_ONCE} OFFSET $2`;
const deleteOwnAccessTokensSql = statement(
  'delete-surplus-own-access-tokens',
  `DELETE FROM access_tokens WHERE family_id IN (${ownSurplus})`,
);
// Keeps families that still have access tokens: concurrent calls may have made more families surplus since the statement above.
const deleteOwnFamiliesSql = statement(
  'delete-surplus-own-families',
  `DELETE FROM token_families WHERE family_id IN (${ownSurplus})
     AND NOT EXISTS (SELECT 1 FROM access_tokens t WHERE t.family_id = token_families.family_id)`,
);

/** Ends the oldest tokens that an application got for itself, beyond `MAX_OWN_TOKENS`. */
export function deleteSurplusOwnTokensStatements({ clientId, familyId, nowMs }: NewFamily): BoundStatement[] {
  return [deleteOwnAccessTokensSql, deleteOwnFamiliesSql].map((each) => ({
    statement: each,
    parameters: [clientId, MAX_OWN_TOKENS, familyId, nowMs],
  }));
}

/** A younger access token is kept, however often its family is refreshed: a call with it may be in progress. */
const YOUNG_MS = 10_000;

const generationIssuedSql = statement<{ issued_at_ms: number }>(
  'generation-issued-at',
  'SELECT issued_at_ms FROM refresh_tokens WHERE family_id = $1 AND generation = $2',
);
const deleteOldAccessTokensSql = statement(
  'delete-access-tokens-before',
  'DELETE FROM access_tokens WHERE family_id = $1 AND issued_at_ms < $2',
);

/** Deletes the access tokens of a family before its latest `ACCESS_TOKENS_KEPT`, once in as many refreshes. */
export async function deleteOldAccessTokens(
  transaction: Transaction,
  { familyId, generation, nowMs }: { readonly familyId: string; readonly generation: number; readonly nowMs: number },
): Promise<void> {
  const oldest = generation - ACCESS_TOKENS_KEPT;
  if (oldest % ACCESS_TOKENS_KEPT !== 0 || oldest <= 0) return;
  const [issued] = await transaction.run(generationIssuedSql, [familyId, oldest]);
  const beforeMs = Math.min(issued?.issued_at_ms ?? 0, nowMs - YOUNG_MS);
  await transaction.run(deleteOldAccessTokensSql, [familyId, beforeMs]);
}
