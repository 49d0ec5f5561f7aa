/** Stores a new password, which ends earlier sessions and application tokens. A new hash of the same password ends nothing. */
import { type BoundStatement, type Procedure, procedure, type Store, statement } from '../../database/store.ts';
import { changeAndRecordIn, type RecordedChange } from './audit-store.ts';

const setPasswordSql = statement<{ id: string }>(
  'set-password',
  `UPDATE users SET password_hash = $2, password_changed_at_ms = $3, epoch = epoch + 1
   WHERE id = $1 AND epoch = COALESCE($4, epoch) AND is_admin = COALESCE($5, is_admin)
     AND COALESCE(verified_email_key, '') = COALESCE($6, verified_email_key, '') RETURNING id`,
);
// Compares the old hash, so that rehashing the old password never undoes a new one that was set meanwhile.
const replacePasswordHashSql = statement(
  'replace-password-hash',
  'UPDATE users SET password_hash = $3 WHERE id = $1 AND password_hash = $2',
);

/**
 * Also makes every session and application token invalid, because it raises the credential generation. Callers delete the rows
 * of the sessions too, so that no list shows them.
 */
export function setPasswordStatement(userId: string, passwordHash: string, nowMs: number): BoundStatement {
  return { statement: setPasswordSql, parameters: [userId, passwordHash, nowMs, null, null, null] };
}

export interface PasswordChange {
  readonly userId: string;
  /** The credential generation that was read when the person authenticated. */
  readonly credentialGeneration: number;
  /** The role that the person must still have; absent if either will do. */
  readonly isAdmin?: boolean;
  /** The key of the address that the link was mailed to, which must still be verified; absent or null without a mail. */
  readonly verifiedEmailKey?: string | null;
  readonly passwordHash: string;
  readonly nowMs: number;
  /** Committed with it. */
  readonly statements: readonly BoundStatement[];
  /** Committed with it, and recorded if there is anything to change. */
  readonly changes?: readonly RecordedChange[];
}

/** Returns false if another password was set meanwhile, or the role or address changed: the session or link has ended. */
export const changePasswordOnce: Procedure<PasswordChange, boolean> = procedure(
  import.meta.url,
  'changePasswordOnce',
  async (transaction, { statements, changes = [], ...change }) => {
    const { userId, passwordHash, nowMs, credentialGeneration, isAdmin, verifiedEmailKey = null } = change;
    const role = isAdmin === undefined ? null : Number(isAdmin);
    const parameters = [userId, passwordHash, nowMs, credentialGeneration, role, verifiedEmailKey];
    const changed = await transaction.run(setPasswordSql, parameters);
    if (changed.length === 0) return false;
    await transaction.runAll(statements);
    for (const recorded of changes) await changeAndRecordIn(transaction, recorded);
    return true;
  },
);

/** Stores a hash of the same password with newer parameters, unless the password was changed meanwhile. */
export async function rehashPassword(store: Store, userId: string, oldHash: string, newHash: string): Promise<void> {
  await store.write(replacePasswordHashSql, [userId, oldHash, newHash]);
}
