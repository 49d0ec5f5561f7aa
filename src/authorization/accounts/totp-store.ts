/**
 * Stores the second step: the encrypted seed, recovery codes, and the last accepted time step (replay). The seed of an
 * authenticator app is encrypted with its person as associated data; recovery codes are stored as digests. Each code is accepted
 * once: a conditional UPDATE decides, so that of two sign-ins with one code only one succeeds.
 */
import { createHash } from 'node:crypto';
import { type BoundStatement, type Store, statement } from '../../database/store.ts';
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import { auditStatement, changeAndRecord } from './audit-store.ts';

const confirmedTotpSql = statement<{ seed: Uint8Array }>(
  'confirmed-totp',
  'SELECT seed FROM totp_secrets WHERE user_id = $1 AND confirmed_at_ms IS NOT NULL',
);
const pendingTotpSql = statement<{ seed: Uint8Array }>(
  'pending-totp',
  'SELECT seed FROM totp_secrets WHERE user_id = $1 AND confirmed_at_ms IS NULL',
);
// Never replaces a confirmed seed: the app must be turned off first, which needs the password.
const offerTotpSql = statement<{ user_id: string }>(
  'offer-totp',
  `INSERT INTO totp_secrets (user_id, seed, confirmed_at_ms, last_step) VALUES ($1, $2, NULL, 0)
   ON CONFLICT (user_id) DO UPDATE SET seed = excluded.seed
   WHERE totp_secrets.confirmed_at_ms IS NULL RETURNING user_id`,
);
// Compares the seed, since another page may have offered another one after the digits were checked, and the credential
// generation, since the session may have ended.
const confirmTotpSql = statement<{ user_id: string }>(
  'confirm-totp',
  `UPDATE totp_secrets SET confirmed_at_ms = $2, last_step = $3
   WHERE user_id = $1 AND confirmed_at_ms IS NULL AND seed = COALESCE($4, seed)
     AND EXISTS (SELECT 1 FROM users WHERE id = $1 AND epoch = COALESCE($5, epoch)) RETURNING user_id`,
);
// RFC 6238 §5.2: a one-time password is not accepted twice. A stored step further ahead than any step that is accepted now was
// spent while the clock was wrong, and must not lock the person out until that time.
const spendTotpStepSql = statement<{ user_id: string }>(
  'spend-totp-step',
  `UPDATE totp_secrets SET last_step = $2
   WHERE user_id = $1 AND (last_step < $2 OR last_step > $2 + 2) AND confirmed_at_ms IS NOT NULL RETURNING user_id`,
);
const stopTotpSql = statement<{ user_id: string }>(
  'stop-totp',
  'DELETE FROM totp_secrets WHERE user_id = $1 AND confirmed_at_ms IS NOT NULL RETURNING user_id',
);
// Locks the row: a concurrent renewal, or turning the app off, commits first and is seen here.
const lockConfirmedTotpSql = statement<{ user_id: string }>(
  'lock-confirmed-totp',
  'UPDATE totp_secrets SET last_step = last_step WHERE user_id = $1 AND confirmed_at_ms IS NOT NULL RETURNING user_id',
);
const insertRecoveryCodeSql = statement(
  'insert-recovery-code',
  'INSERT INTO recovery_codes (user_id, code_hash, used_at_ms) VALUES ($1, $2, NULL)',
);
const deleteRecoveryCodesSql = statement('delete-recovery-codes', 'DELETE FROM recovery_codes WHERE user_id = $1');
const spendRecoveryCodeSql = statement<{ user_id: string }>(
  'spend-recovery-code',
  `UPDATE recovery_codes SET used_at_ms = $3
   WHERE user_id = $1 AND code_hash = $2 AND used_at_ms IS NULL RETURNING user_id`,
);
const countLeftSql = statement<{ left_over: number }>(
  'count-recovery-codes',
  'SELECT COUNT(*) AS left_over FROM recovery_codes WHERE user_id = $1 AND used_at_ms IS NULL',
);

export function seedAssociatedData(userId: string): string {
  return `totp:${userId}`;
}

export async function hasTotp(store: Store, userId: string): Promise<boolean> {
  return (await store.read(confirmedTotpSql, [userId])).length > 0;
}

/** The base32 seed of the app, if the app is turned on. */
export async function findTotpSeed(store: Store, cipher: SecretCipher, userId: string): Promise<string | undefined> {
  const [row] = await store.read(confirmedTotpSql, [userId]);
  return row && cipher.decrypt(row.seed, seedAssociatedData(userId)).toString('utf8');
}

/** A seed that was offered and is not confirmed yet. */
export interface PendingTotp {
  readonly seed: string;
  /** The seed as it is stored; identifies it. */
  readonly ciphertext: Uint8Array;
}

/** The seed that was offered and not confirmed yet. */
export async function findPendingTotp(
  store: Store,
  cipher: SecretCipher,
  userId: string,
): Promise<PendingTotp | undefined> {
  const [row] = await store.read(pendingTotpSql, [userId]);
  return row && { seed: cipher.decrypt(row.seed, seedAssociatedData(userId)).toString('utf8'), ciphertext: row.seed };
}

/** Returns false if an app is turned on already. */
export async function offerTotpSeed(
  store: Store,
  cipher: SecretCipher,
  offer: { readonly userId: string; readonly seed: string },
): Promise<boolean> {
  return (
    (await store.write(offerTotpSql, [offer.userId, cipher.encrypt(offer.seed, seedAssociatedData(offer.userId))]))
      .length > 0
  );
}

export interface TotpConfirmation {
  readonly userId: string;
  /** `PendingTotp.ciphertext` of the seed that the digits were checked against; any seed when absent. */
  readonly ciphertext?: Uint8Array;
  /** The generation that was read with the session; any generation when absent. */
  readonly credentialGeneration?: number;
  readonly timeStep: number;
  readonly nowMs: number;
}

/** Returns a row unless the app is on already, or another seed was offered or the session has ended meanwhile. */
export function confirmTotpStatement(confirmation: TotpConfirmation): BoundStatement {
  const { userId, ciphertext = null, credentialGeneration = null, timeStep, nowMs } = confirmation;
  return { statement: confirmTotpSql, parameters: [userId, nowMs, timeStep, ciphertext, credentialGeneration] };
}

/** True once for each time step. */
export async function spendTotpTimeStep(store: Store, userId: string, timeStep: number): Promise<boolean> {
  return (await store.write(spendTotpStepSql, [userId, timeStep])).length > 0;
}

/** Returns a row unless the app is off. Execute `deleteRecoveryCodesStatement` too. */
export function stopTotpStatement(userId: string): BoundStatement {
  return { statement: stopTotpSql, parameters: [userId] };
}

/** Returns a row unless the app is off. Other changes of the person's second step wait until the transaction ends. */
export function lockTotpStatement(userId: string): BoundStatement {
  return { statement: lockConfirmedTotpSql, parameters: [userId] };
}

export function deleteRecoveryCodesStatement(userId: string): BoundStatement {
  return { statement: deleteRecoveryCodesSql, parameters: [userId] };
}

/** Ignores letter case and dashes. */
function hashRecoveryCode(userId: string, code: string): string {
  const letters = code.toLowerCase().replace(/[^a-z0-9]/g, '');
  return createHash('sha256').update(`trivet recovery ${userId} ${letters}`).digest('base64url');
}

/** Replaces all recovery codes of a person. */
export function replaceRecoveryCodesStatements(userId: string, codes: readonly string[]): BoundStatement[] {
  return [
    { statement: deleteRecoveryCodesSql, parameters: [userId] },
    ...codes.map((code) => ({
      statement: insertRecoveryCodeSql,
      parameters: [userId, hashRecoveryCode(userId, code)],
    })),
  ];
}

export interface SpentRecoveryCode {
  readonly userId: string;
  readonly code: string;
  readonly address: string;
  readonly nowMs: number;
}

/** True once for each code. Its use is recorded in the same transaction, even if the sign-in fails afterwards. */
export async function spendRecoveryCode(store: Store, spent: SpentRecoveryCode): Promise<boolean> {
  const { userId, code, address, nowMs } = spent;
  return await store.call(changeAndRecord, {
    change: { statement: spendRecoveryCodeSql, parameters: [userId, hashRecoveryCode(userId, code), nowMs] },
    statements: [auditStatement({ kind: 'recovery_code_used', userId, address }, nowMs)],
  });
}

export async function countRecoveryCodes(store: Store, userId: string): Promise<number> {
  return (await store.read(countLeftSql, [userId]))[0]?.left_over ?? 0;
}
