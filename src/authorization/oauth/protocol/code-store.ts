/**
 * Stores authorization codes and redeems each once; a second use revokes the tokens of the first. One conditional UPDATE redeems
 * a code, in the transaction that creates its tokens.
 */
import { type BoundStatement, type Procedure, procedure, type Store, statement } from '../../../database/store.ts';
import { MAX_SKEW_MS } from '../../../steady-clock.ts';
import { existsStillValid } from '../../accounts/credential-validity-store.ts';
import { deleteSurplusFamilies } from '../../tokens/surplus-tokens-store.ts';
import { insertFamilyStatements, type NewTokens, type PersonOrigin, revokeFamily } from '../../tokens/token-store.ts';
import { type ConsentDecision, saveConsentIn } from './consent-store.ts';

export interface NewCode extends PersonOrigin {
  readonly codeHash: Uint8Array;
  readonly clientId: string;
  readonly redirectUri: string;
  readonly codeChallenge: string | undefined;
  readonly scope: string;
  readonly nonce: string | undefined;
  readonly authTimeMs: number;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
}

/** The fields that an exchange is checked against. They never change, so it is safe to read them before the redemption. */
export interface IssuedCode {
  readonly clientId: string;
  readonly userId: string;
  readonly redirectUri: string;
  readonly codeChallenge: string | null;
  readonly scope: string;
  readonly nonce: string | undefined;
  readonly authTimeMs: number;
}

interface CodeRow {
  readonly client_id: string;
  readonly user_id: string;
  readonly redirect_uri: string;
  readonly code_challenge: string | null;
  readonly scope: string;
  readonly nonce: string | null;
  readonly auth_time_ms: number;
}

/** After this many wrong verifiers a code becomes invalid: an honest client needs no more. */
const MAX_FAILED_ATTEMPTS = 5;

const insertCodeSql = statement(
  'insert-code',
  `INSERT INTO authorization_codes (code_hash, client_id, user_id, user_epoch, grant_id, redirect_uri, code_challenge, scope,
     nonce, auth_time_ms, issued_at_ms, expires_at_ms, failed_attempts)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0)`,
);
const codeByHashSql = statement<CodeRow>(
  'code-by-hash',
  `SELECT client_id, user_id, redirect_uri, code_challenge, scope, nonce, auth_time_ms
   FROM authorization_codes WHERE code_hash = $1`,
);
const countFailureSql = statement(
  'count-code-failure',
  'UPDATE authorization_codes SET failed_attempts = failed_attempts + 1 WHERE code_hash = $1',
);
// Refuses a code dated in the future: it was issued while the clock was wrong, and would be valid for too long.
const redeemSql = statement<{
  user_id: string;
  user_epoch: number;
  grant_id: string;
  scope: string;
  auth_time_ms: number;
}>(
  'redeem-code',
  `UPDATE authorization_codes SET redeemed_at_ms = $2, family_id = $3
   WHERE code_hash = $1 AND redeemed_at_ms IS NULL AND expires_at_ms > $2 AND issued_at_ms <= $2 + ${MAX_SKEW_MS} AND failed_attempts < ${MAX_FAILED_ATTEMPTS}
     AND ${existsStillValid('authorization_codes')}
   RETURNING user_id, user_epoch, grant_id, scope, auth_time_ms`,
);
const familyOfCodeSql = statement<{ family_id: string }>(
  'family-of-redeemed-code',
  'SELECT family_id FROM authorization_codes WHERE code_hash = $1 AND redeemed_at_ms IS NOT NULL AND family_id IS NOT NULL',
);
export function insertCodeStatement(code: NewCode): BoundStatement {
  return {
    statement: insertCodeSql,
    parameters: [
      code.codeHash,
      code.clientId,
      code.userId,
      code.credentialGeneration,
      code.consentId,
      code.redirectUri,
      code.codeChallenge ?? null,
      code.scope,
      code.nonce ?? null,
      code.authTimeMs,
      code.issuedAtMs,
      code.expiresAtMs,
    ],
  };
}

export interface AllowedCode {
  readonly decision: ConsentDecision;
  readonly code: Omit<NewCode, 'consentId'>;
  readonly audit: BoundStatement;
}

/** Stores a person's decision and the code for it. */
export const insertAllowedCode: Procedure<AllowedCode, void> = procedure(
  import.meta.url,
  'insertAllowedCode',
  async (transaction, { decision, code, audit }) => {
    const consentId = await saveConsentIn(transaction, decision);
    await transaction.runAll([insertCodeStatement({ ...code, consentId }), audit]);
  },
);

export async function findCode(store: Store, codeHash: Uint8Array): Promise<IssuedCode | undefined> {
  const [row] = await store.read(codeByHashSql, [codeHash]);
  return (
    row && {
      clientId: row.client_id,
      userId: row.user_id,
      redirectUri: row.redirect_uri,
      codeChallenge: row.code_challenge,
      scope: row.scope,
      nonce: row.nonce ?? undefined,
      authTimeMs: row.auth_time_ms,
    }
  );
}

export async function countCodeFailure(store: Store, codeHash: Uint8Array): Promise<void> {
  await store.write(countFailureSql, [codeHash]);
}

export interface Redemption {
  readonly codeHash: Uint8Array;
  readonly clientId: string;
  readonly nowMs: number;
  readonly familyId: string;
  readonly familyExpiresAtMs: number;
  readonly tokens: NewTokens;
  /** Empty if the audit log has enough of these events (`issue-log.ts`). */
  readonly audit: readonly BoundStatement[];
  /** Whether this call also deletes families over the limit (surplus-tokens-store.ts). */
  readonly deletesSurplus: boolean;
  readonly address: string | undefined;
}

/**
 * Redeems a code. Call it only after client and verifier were checked: then a second redemption means that the code was stolen,
 * and every token of the first becomes invalid (RFC 6749 §4.1.2).
 */
export const redeemCode: Procedure<Redemption, 'redeemed' | 'refused'> = procedure(
  import.meta.url,
  'redeemCode',
  async (transaction, input) => {
    const { codeHash, clientId, nowMs, familyId } = input;
    const [code] = await transaction.run(redeemSql, [codeHash, nowMs, familyId]);
    if (code === undefined) {
      const [family] = await transaction.run(familyOfCodeSql, [codeHash]);
      if (family)
        await revokeFamily(transaction, family.family_id, { kind: 'code_replayed', nowMs, address: input.address });
      return 'refused';
    }
    const family = {
      familyId,
      clientId,
      person: { userId: code.user_id, credentialGeneration: code.user_epoch, consentId: code.grant_id },
      scope: code.scope,
      authTimeMs: code.auth_time_ms,
      nowMs,
      expiresAtMs: input.familyExpiresAtMs,
    };
    await transaction.runAll([...insertFamilyStatements(family, input.tokens), ...input.audit]);
    if (input.deletesSurplus) await deleteSurplusFamilies(transaction, { ...family, userId: code.user_id });
    return 'redeemed';
  },
);
