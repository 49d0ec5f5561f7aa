/**
 * Changes how a person can sign in (address, password, link, second step), and decides what the scope `admin:people` may set.
 * Such a token has only some of an administrator's rights. When it sets the address, the password or a link, or turns off the
 * second step, the same transaction marks the account (column `delegated_access`). When the person of a marked account becomes
 * an administrator, every way to sign in ends, also those added later: the holder of the token may have added them.
 */
import {
  type BoundStatement,
  conditionalProcedure,
  nameStatement,
  type Procedure,
  procedure,
  type Store,
  statement,
  type Transaction,
} from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { ADMINISTRATOR_SCOPES, refuseScope } from '../../scopes.ts';
import { changeAndRecordIn, type RecordedChange } from './audit-store.ts';

// Returns no row for the account of an administrator: the role can change between the check of a request and its transaction.
const delegateAccessSql = statement<{ id: string }>(
  'delegate-access',
  'UPDATE users SET delegated_access = 1 WHERE id = $1 AND is_admin = 0 RETURNING id',
);
const isOrdinarySql = statement<{ id: string }>(
  'is-ordinary-person',
  'SELECT id FROM users WHERE id = $1 AND is_admin = 0',
);
const promoteSql = statement<{ delegated_access: number }>(
  'promote-user-at',
  `UPDATE users SET is_admin = 1, administrator_since_ms = $2 WHERE id = $1 AND is_admin = 0
   RETURNING delegated_access`,
);
// Administrator rights that the person granted while in the role before must not come back with the role.
const HAS_ADMINISTRATOR_SCOPE = ADMINISTRATOR_SCOPES.map((scope) => `' ' || scope || ' ' LIKE '% ${scope} %'`).join(
  ' OR ',
);
const deleteAdministratorTokensSql = statement(
  'delete-personal-tokens-of-administrator',
  `WITH RECURSIVE ended (token_id) AS (
     SELECT token_id FROM personal_tokens WHERE user_id = $1 AND (${HAS_ADMINISTRATOR_SCOPE})
     UNION SELECT p.token_id FROM personal_tokens p JOIN ended e ON p.parent_id = e.token_id)
   DELETE FROM personal_tokens WHERE token_id IN (SELECT token_id FROM ended)`,
);
const deleteAdministratorConsentsSql = statement(
  'delete-consents-of-administrator',
  `DELETE FROM consents WHERE user_id = $1 AND (${HAS_ADMINISTRATOR_SCOPE})`,
);
const endAdministratorScopesSql = [deleteAdministratorTokensSql, deleteAdministratorConsentsSql];
// The address stays visible to administrators, but is no longer verified: no link is mailed to it.
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
  ...TABLES.map((table) => statement(nameStatement('end-access', table), `DELETE FROM ${table} WHERE user_id = $1`)),
];
// Locks the row: a change in progress, such as a new password, commits first and is seen here.
const lockPersonSql = statement<{ id: string }>(
  'lock-person-of-way-in',
  'UPDATE users SET epoch = epoch WHERE id = $1 AND epoch = $2 AND disabled_at_ms IS NULL RETURNING id',
);

const waysInSql = statement<{ passkeys: number; accounts: number }>(
  'ways-in',
  `SELECT (SELECT COUNT(*) FROM passkeys p WHERE p.user_id = users.id) AS passkeys,
     (SELECT COUNT(*) FROM upstream_accounts a WHERE a.user_id = users.id) AS accounts
   FROM users WHERE id = $1`,
);
// A linked account counts only if it is at the provider that the service uses now.
const usableWaysInSql = statement<{ usable: number }>(
  'usable-ways-in',
  `SELECT (SELECT COUNT(*) FROM passkeys p WHERE p.user_id = users.id)
     + (SELECT COUNT(*) FROM upstream_accounts a WHERE a.user_id = users.id AND a.issuer = $2)
     + CASE WHEN password_changed_at_ms IS NULL THEN 0 ELSE 1 END AS usable
   FROM users WHERE id = $1`,
);
/** How many passkeys and linked accounts a person may have. */
export const MAX_WAYS_IN = 100;

/** The account, and the rights of the actor who changes it. */
export interface Access {
  readonly userId: string;
  /** True for an actor with all the rights of an administrator, and for a command on the store. */
  readonly hasAllRights: boolean;
}

/** Marks the account, or throws `forbidden` if it is an administrator's. An actor with all rights passes, and marks nothing. */
export async function checkAccess(transaction: Transaction, { userId, hasAllRights }: Access): Promise<void> {
  if (hasAllRights) return;
  // A caller who could change the account of an administrator could act with all rights.
  if ((await transaction.run(delegateAccessSql, [userId])).length === 0) throw refuseScope('admin');
}

/** Throws as `checkAccess` does, but does not mark the account: for a change that sets no way to sign in. */
export async function checkRole(transaction: Transaction, { userId, hasAllRights }: Access): Promise<void> {
  if (hasAllRights) return;
  if ((await transaction.run(isOrdinarySql, [userId])).length === 0) throw refuseScope('admin');
}

export interface PersonChange extends Access {
  /** Returns a row unless there is nothing to change. */
  readonly change: BoundStatement;
  /** Executed after a change. */
  readonly statements: readonly BoundStatement[];
}

/** Throws as `checkRole` does. */
export const changePersonOnce: Procedure<PersonChange, void> = procedure(
  import.meta.url,
  'changePersonOnce',
  async (transaction, { change, statements, ...access }) => {
    await checkRole(transaction, access);
    if ((await transaction.run(change.statement, change.parameters)).length > 0) await transaction.runAll(statements);
  },
);

export interface AccessChange extends Access {
  readonly statements: readonly BoundStatement[];
  /** Committed with it, and recorded if there is anything to change. */
  readonly changes?: readonly RecordedChange[];
  /** Is executed first, and returns a row unless there is nothing to change. */
  readonly required?: { readonly change: BoundStatement; readonly refusal: string };
}

/** Throws as `checkAccess` does, and `not_found` with the refusal when `required` has nothing to change. */
export const changeAccessOnce: Procedure<AccessChange, void> = procedure(
  import.meta.url,
  'changeAccessOnce',
  async (transaction, change) => {
    const { required, statements, changes = [] } = change;
    await checkAccess(transaction, change);
    if (required !== undefined) await checkRequired(transaction, required);
    await transaction.runAll(statements);
    for (const each of changes) await changeAndRecordIn(transaction, each);
  },
);

async function checkRequired(
  transaction: Transaction,
  { change, refusal }: NonNullable<AccessChange['required']>,
): Promise<void> {
  const changed = await transaction.run(change.statement, change.parameters);
  if (changed.length === 0) throw new Failure('not_found', refusal);
}

export interface Promotion {
  readonly userId: string;
  readonly nowMs: number;
  /** The event for the audit log. */
  readonly audit: BoundStatement;
}

/**
 * Returns true if every way to sign in has ended. Tokens and consents with administrator scopes end in any case: they are from
 * an earlier time in the role. Does nothing for a person who is an administrator already.
 */
export const promoteOnce: Procedure<Promotion, boolean> = procedure(
  import.meta.url,
  'promoteOnce',
  async (transaction, { userId, nowMs, audit }) => {
    const [promoted] = await transaction.run(promoteSql, [userId, nowMs]);
    if (promoted === undefined) return false;
    const endsAccess = promoted.delegated_access === 1;
    const endings = endsAccess ? endAllAccessSql : endAdministratorScopesSql;
    await transaction.runAll([...endings.map((each) => ({ statement: each, parameters: [userId] })), audit]);
    return endsAccess;
  },
);

/** A passkey, or an account at the upstream provider, that a signed-in person adds. */
export interface NewWayIn {
  readonly userId: string;
  /** The generation that was read with the session: if the session has ended since, nothing is added. */
  readonly credentialGeneration: number;
  /** Returns a row unless it is stored already. */
  readonly insert: BoundStatement;
  readonly audit: BoundStatement;
}

/** `refused`: it is stored already, or the session has ended meanwhile. `full`: the person has `MAX_WAYS_IN`. */
export const addWayInOnce: Procedure<NewWayIn, 'added' | 'refused' | 'full'> = conditionalProcedure(
  import.meta.url,
  'addWayInOnce',
  async (transaction, { userId, credentialGeneration, insert, audit }) => {
    if ((await transaction.run(lockPersonSql, [userId, credentialGeneration])).length === 0) return 'refused';
    const [ways] = await transaction.run(waysInSql, [userId]);
    if (ways !== undefined && ways.passkeys + ways.accounts >= MAX_WAYS_IN) return 'full';
    const [added] = await transaction.runAll([insert]);
    if (added === undefined || added.length === 0) return 'refused';
    await transaction.runAll([audit]);
    return 'added';
  },
);

/** Throws `conflict` when the person has `MAX_WAYS_IN`. An early check before a ceremony; `addWayInOnce` decides. */
export async function checkPlaceForWayIn(store: Pick<Store, 'read'>, userId: string): Promise<void> {
  const [ways] = await store.read(waysInSql, [userId]);
  if (ways !== undefined && ways.passkeys + ways.accounts >= MAX_WAYS_IN) throw refuseMoreWaysIn();
}

export function refuseMoreWaysIn(): Failure {
  return new Failure(
    'conflict',
    `Cannot add a way to sign in: a person has at most ${MAX_WAYS_IN} passkeys and linked accounts; remove one first`,
  );
}

export interface WayInRemoval {
  readonly userId: string;
  /** The provider that people may sign in with; undefined without one. */
  readonly upstreamIssuer: string | undefined;
  /** Returns a row unless there is nothing to remove. */
  readonly remove: BoundStatement;
  readonly audit: BoundStatement;
}

/** The message that `removeWayInOnce` throws to roll back the removal. */
const LAST_WAY_IN = 'Cannot remove it: it is the only way to sign in';

/**
 * Removes a passkey or linked accounts. Throws `conflict` if the person could no longer sign in; of two concurrent removals that
 * together would take the last two ways, the later one is refused. Records nothing if there was nothing to remove.
 */
export const removeWayInOnce: Procedure<WayInRemoval, void> = procedure(
  import.meta.url,
  'removeWayInOnce',
  async (transaction, { userId, upstreamIssuer, remove, audit }) => {
    if ((await transaction.run(remove.statement, remove.parameters)).length === 0) return;
    const [ways] = await transaction.run(usableWaysInSql, [userId, upstreamIssuer ?? '']);
    if (ways?.usable === 0) throw new Failure('conflict', LAST_WAY_IN);
    await transaction.runAll([audit]);
  },
);
