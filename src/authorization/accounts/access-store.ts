/**
 * Changes of the ways into an account. A token with a part of an administrator's rights (the scope `admin:people`) may set the
 * address, the password, a link, or turn off the second step. Such an account is marked in the same transaction. When its person
 * becomes an administrator, all ways in end, also those that were added later: the holder of the token may have added them.
 */
import {
  type BoundStatement,
  conditionalProcedure,
  type Procedure,
  procedure,
  statement,
  type Transaction,
} from '../../database/store.ts';
import { refuseScope } from '../../scopes.ts';

// No row for the account of an administrator: the role can change between the check of a request and its transaction.
const delegateAccessSql = statement<{ id: string }>(
  'delegate-access',
  'UPDATE users SET delegated_access = 1 WHERE id = $1 AND is_admin = 0 RETURNING id',
);
const promoteSql = statement<{ delegated_access: number }>(
  'promote-user',
  'UPDATE users SET is_admin = 1 WHERE id = $1 AND is_admin = 0 RETURNING delegated_access',
);
// The address stays, so that administrators see it, but is not verified any more: no link is mailed to it.
const endAccessSql = statement(
  'end-access',
  `UPDATE users SET password_hash = NULL, password_changed_at_ms = NULL, verified_email_key = NULL, epoch = epoch + 1,
     delegated_access = 0
   WHERE id = $1`,
);
const TABLES = [
  'sessions',
  'totp_secrets',
  'recovery_codes',
  'passkeys',
  'upstream_accounts',
  'personal_tokens',
  'consents',
];
const endAllAccessSql = [
  endAccessSql,
  ...TABLES.map((table) => statement(`end-access-${table}`, `DELETE FROM ${table} WHERE user_id = $1`)),
];
// Waits for a change of the person under way, such as a new password, and is decided after it.
const lockPersonSql = statement<{ id: string }>(
  'lock-person-of-way-in',
  'UPDATE users SET epoch = epoch WHERE id = $1 AND epoch = $2 AND disabled_at_ms IS NULL RETURNING id',
);

/** The account, and the rights of the one who changes it. */
export interface Access {
  readonly userId: string;
  /** All the rights of an administrator, or a command on the store. */
  readonly hasAllRights: boolean;
}

/** Throws `forbidden` for the account of an administrator without all rights. */
export async function checkAccess(transaction: Transaction, { userId, hasAllRights }: Access): Promise<void> {
  if (hasAllRights) return;
  // With the account of an administrator, part of the rights would become all of them.
  if ((await transaction.run(delegateAccessSql, [userId])).length === 0) throw refuseScope('admin');
}

export interface AccessChange extends Access {
  readonly statements: readonly BoundStatement[];
}

/** Throws as `checkAccess`. */
export const changeAccessOnce: Procedure<AccessChange, void> = procedure(
  import.meta.url,
  'changeAccessOnce',
  async (transaction, change) => {
    await checkAccess(transaction, change);
    await transaction.runAll(change.statements);
  },
);

export interface Promotion {
  readonly userId: string;
  /** What is recorded of it. */
  readonly audit: BoundStatement;
}

/** True when all ways into the account have ended. Nothing happens to an administrator. */
export const promoteOnce: Procedure<Promotion, boolean> = procedure(
  import.meta.url,
  'promoteOnce',
  async (transaction, { userId, audit }) => {
    const [promoted] = await transaction.run(promoteSql, [userId]);
    if (promoted === undefined) return false;
    const endsAccess = promoted.delegated_access === 1;
    const endings = endsAccess ? endAllAccessSql.map((each) => ({ statement: each, parameters: [userId] })) : [];
    await transaction.runAll([...endings, audit]);
    return endsAccess;
  },
);

/** A passkey, or an account at the upstream provider, that a signed-in person adds. */
export interface NewWayIn {
  readonly userId: string;
  /** As read with the session: what ends the session ends what it is about to add. */
  readonly credentialGeneration: number;
  /** Returns a row unless the same one is there already. */
  readonly insert: BoundStatement;
  readonly audit: BoundStatement;
}

/** False when the same one is there already, or the session has ended meanwhile. */
export const addWayInOnce: Procedure<NewWayIn, boolean> = conditionalProcedure(
  import.meta.url,
  'addWayInOnce',
  async (transaction, { userId, credentialGeneration, insert, audit }) => {
    if ((await transaction.run(lockPersonSql, [userId, credentialGeneration])).length === 0) return false;
    const [added] = await transaction.runAll([insert]);
    if (added === undefined || added.length === 0) return false;
    await transaction.runAll([audit]);
    return true;
  },
);
