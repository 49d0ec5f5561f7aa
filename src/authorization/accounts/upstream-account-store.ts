/** Links accounts at an upstream provider to people here, each to one person. */
import { type BoundStatement, type Store, statement } from '../../database/store.ts';
import { toUser, USER_COLUMNS, type User, type UserRow } from './user-store.ts';

export interface UpstreamAccount {
  readonly issuer: string;
  readonly subject: string;
  readonly userId: string;
  /** Shown to its owner: the email address or a name at the provider. */
  readonly label: string;
  readonly linkedAtMs: number;
}

interface UpstreamRow {
  readonly issuer: string;
  readonly subject: string;
  readonly user_id: string;
  readonly label: string;
  readonly linked_at_ms: number;
}

const UPSTREAM_COLUMNS = 'issuer, subject, user_id, label, linked_at_ms';

// One statement, so that the person is read with a credential generation under which the account was linked.
const userOfUpstreamAccountSql = statement<UserRow>(
  'user-of-upstream-account',
  `SELECT ${USER_COLUMNS} FROM users
   WHERE id = (SELECT user_id FROM upstream_accounts WHERE issuer = $1 AND subject = $2)`,
);
const upstreamAccountsOfUserSql = statement<UpstreamRow>(
  'upstream-accounts-of-user',
  `SELECT ${UPSTREAM_COLUMNS} FROM upstream_accounts WHERE user_id = $1 ORDER BY linked_at_ms, issuer, subject`,
);
const linkUpstreamSql = statement<{ user_id: string }>(
  'link-upstream-account',
  `INSERT INTO upstream_accounts (${UPSTREAM_COLUMNS}) VALUES ($1, $2, $3, $4, $5)
   ON CONFLICT (issuer, subject) DO NOTHING RETURNING user_id`,
);
// Without ON CONFLICT: of two concurrent first visits, the primary key fails the second, which rolls back its new person.
const linkNewUserSql = statement(
  'link-new-user',
  `INSERT INTO upstream_accounts (${UPSTREAM_COLUMNS}) VALUES ($1, $2, $3, $4, $5)`,
);
const unlinkUpstreamSql = statement<{ subject: string }>(
  'unlink-upstream-accounts',
  'DELETE FROM upstream_accounts WHERE user_id = $1 AND issuer = $2 RETURNING subject',
);

function toAccount(row: UpstreamRow): UpstreamAccount {
  const { issuer, subject, label } = row;
  return { issuer, subject, label, userId: row.user_id, linkedAtMs: row.linked_at_ms };
}

/** The person to whom this account at the provider is linked. */
export async function findUserOfUpstreamAccount(
  store: Store,
  issuer: string,
  subject: string,
): Promise<User | undefined> {
  const [row] = await store.read(userOfUpstreamAccountSql, [issuer, subject]);
  return row && toUser(row);
}

export async function listUpstreamAccounts(store: Store, userId: string): Promise<UpstreamAccount[]> {
  return (await store.read(upstreamAccountsOfUserSql, [userId])).map(toAccount);
}

/** Links the account of a new person. Fails the transaction, and so the new person, if that account was linked meanwhile. */
export function linkNewUserStatement({ issuer, subject, userId, label, linkedAtMs }: UpstreamAccount): BoundStatement {
  return { statement: linkNewUserSql, parameters: [issuer, subject, userId, label, linkedAtMs] };
}

/** Returns no row if that account is already linked to any person. */
export function linkUpstreamStatement({ issuer, subject, userId, label, linkedAtMs }: UpstreamAccount): BoundStatement {
  return { statement: linkUpstreamSql, parameters: [issuer, subject, userId, label, linkedAtMs] };
}

export function unlinkUpstreamStatement(userId: string, issuer: string): BoundStatement {
  return { statement: unlinkUpstreamSql, parameters: [userId, issuer] };
}
