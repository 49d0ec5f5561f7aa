/**
 * Stores people and their password hashes. Their logins share one name space with organizations (table `logins`), so that the
 * first segment of a repository's path names exactly one owner. Password hashes leave this file only through `findCredentials`.
 */
import { type BoundStatement, type Procedure, procedure, type Store, statement } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import type { World } from '../../world.ts';
import { checkEmail, checkEmailFree, emailKey } from './email-store.ts';
import { checkLogin, checkName, createOwnerId, loginKey } from './login.ts';

export interface User {
  /** 24 hex digits. */
  readonly id: string;
  readonly login: string;
  readonly name: string;
  readonly email: string | null;
  /** An administrator or an upstream provider vouches for the address. At most one person has a given verified address. */
  readonly isEmailVerified: boolean;
  readonly isAdmin: boolean;
  readonly createdAtMs: number;
  readonly disabledAtMs: number | null;
  /** Raised to end all earlier sessions, codes and application tokens of the person (credential-validity-store.ts). */
  readonly credentialGeneration: number;
  /** The time when the password was last set; null without a password (sign-in by passkey or at a provider). */
  readonly passwordChangedAtMs: number | null;
  /** The language chosen for pages and mails; null without a choice. */
  readonly language: string | null;
  /** A token without all rights may have set a way to sign in, so all ways end when the person becomes an administrator. */
  readonly hasDelegatedAccess: boolean;
  /** The time when an ordinary person last became an administrator; null for one who was created as an administrator. */
  readonly administratorSinceMs: number | null;
}

/** The credentials that a sign-in is checked against. */
export interface Credentials {
  readonly user: User;
  readonly passwordHash: string | null;
}

export interface UserRow {
  readonly id: string;
  readonly login: string;
  readonly name: string;
  readonly email: string | null;
  readonly is_admin: number;
  readonly created_at_ms: number;
  readonly disabled_at_ms: number | null;
  readonly password_changed_at_ms: number | null;
  readonly epoch: number;
  readonly verified_email_key: string | null;
  readonly language: string | null;
  readonly delegated_access: number;
  readonly administrator_since_ms: number | null;
}

interface CredentialsRow extends UserRow {
  readonly password_hash: string | null;
}

export const USER_COLUMNS = `id, login, name, email, verified_email_key, is_admin, created_at_ms, disabled_at_ms,
  password_changed_at_ms, epoch, language, delegated_access, administrator_since_ms`;

const userByIdSql = statement<UserRow>('user-by-id', `SELECT ${USER_COLUMNS} FROM users WHERE id = $1`);
const userByLoginSql = statement<UserRow>('user-by-login', `SELECT ${USER_COLUMNS} FROM users WHERE login_key = $1`);
const userByVerifiedEmailSql = statement<UserRow>(
  'account-by-verified-email',
  `SELECT ${USER_COLUMNS} FROM users WHERE verified_email_key = $1`,
);
const credentialsByLoginSql = statement<CredentialsRow>(
  'credentials-by-login',
  `SELECT ${USER_COLUMNS}, password_hash FROM users WHERE login_key = $1`,
);
const usersAfterSql = statement<UserRow>(
  'users-after',
  `SELECT ${USER_COLUMNS} FROM users WHERE login_key > $1 ORDER BY login_key LIMIT $2`,
);
const anyUserSql = statement<{ id: string }>('any-user', 'SELECT id FROM users LIMIT 1');
const anyAdministratorSql = statement<{ id: string }>(
  'any-administrator',
  'SELECT id FROM users WHERE is_admin = 1 LIMIT 1',
);
const takeLoginSql = statement<{ login_key: string }>(
  'take-login',
  `INSERT INTO logins (login_key, kind, owner_id) VALUES ($1, $2, $3)
   ON CONFLICT (login_key) DO NOTHING RETURNING login_key`,
);
const insertUserSql = statement(
  'insert-user',
  `INSERT INTO users (id, login, login_key, name, email, is_admin, password_hash, password_changed_at_ms, created_at_ms,
     verified_email_key, delegated_access)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
);
const raiseEpochSql = statement('raise-user-epoch', 'UPDATE users SET epoch = epoch + 1 WHERE id = $1');
const disableUserSql = statement<UserRow>(
  'disable-user',
  `UPDATE users SET disabled_at_ms = $2 WHERE id = $1 AND disabled_at_ms IS NULL RETURNING ${USER_COLUMNS}`,
);
const enableUserSql = statement<UserRow>(
  'enable-user',
  `UPDATE users SET disabled_at_ms = NULL WHERE id = $1 AND disabled_at_ms IS NOT NULL RETURNING ${USER_COLUMNS}`,
);
const setAdminSql = statement<UserRow>(
  'set-user-admin',
  `UPDATE users SET is_admin = $2 WHERE id = $1 AND is_admin <> $2 RETURNING ${USER_COLUMNS}`,
);

export function toUser(row: UserRow): User {
  return {
    id: row.id,
    login: row.login,
    name: row.name,
    email: row.email,
    isEmailVerified: row.verified_email_key !== null,
    isAdmin: row.is_admin === 1,
    createdAtMs: row.created_at_ms,
    disabledAtMs: row.disabled_at_ms,
    passwordChangedAtMs: row.password_changed_at_ms,
    credentialGeneration: row.epoch,
    language: row.language,
    hasDelegatedAccess: row.delegated_access === 1,
    administratorSinceMs: row.administrator_since_ms,
  };
}

function firstUser(rows: readonly UserRow[]): User | undefined {
  return rows[0] && toUser(rows[0]);
}

export async function findUserById(store: Pick<Store, 'readCached'>, id: string): Promise<User | undefined> {
  return firstUser(await store.readCached(userByIdSql, [id]));
}

/** The login of each id that has an account. */
export async function findLogins(
  store: Store,
  ids: readonly (string | undefined)[],
): Promise<ReadonlyMap<string, string>> {
  const known = [...new Set(ids)].filter((id) => id !== undefined);
  const users = await Promise.all(known.map((id) => findUserById(store, id)));
  return new Map(users.filter((user) => user !== undefined).map((user) => [user.id, user.login]));
}

/** Ignores letter case. */
export async function findUserByLogin(store: Pick<Store, 'readCached'>, login: string): Promise<User | undefined> {
  return firstUser(await store.readCached(userByLoginSql, [loginKey(login)]));
}

export async function findUserByVerifiedEmail(store: Store, email: string): Promise<User | undefined> {
  return firstUser(await store.read(userByVerifiedEmailSql, [emailKey(email)]));
}

export async function findCredentials(store: Store, login: string): Promise<Credentials | undefined> {
  const [row] = await store.read(credentialsByLoginSql, [loginKey(login)]);
  return row && { user: toUser(row), passwordHash: row.password_hash };
}

/** People in the order of their logins, from the one after `afterLogin` on. */
export async function listUsers(store: Store, limit: number, afterLogin = ''): Promise<User[]> {
  return (await store.read(usersAfterSql, [loginKey(afterLogin), limit])).map(toUser);
}

export async function hasUsers(store: Pick<Store, 'read'>): Promise<boolean> {
  return (await store.read(anyUserSql)).length > 0;
}

/** Whether any account has the role, including one that is disabled or cannot sign in yet. */
export async function hasAdministrators(store: Pick<Store, 'read'>): Promise<boolean> {
  return (await store.read(anyAdministratorSql)).length > 0;
}

export interface NewUser {
  readonly login: string;
  readonly name: string;
  readonly email: string | null;
  readonly isEmailVerified?: boolean | undefined;
  readonly isAdmin: boolean;
  readonly passwordHash: string | null;
  /** True if a token without all rights creates the account. */
  readonly hasDelegatedAccess?: boolean | undefined;
}

/** Statements that commit together with a new user; called with the id of that user. */
export type StatementsForUser = (userId: string) => readonly BoundStatement[];

export interface UserInsert extends NewUser {
  readonly id: string;
  readonly statements: readonly BoundStatement[];
  readonly nowMs: number;
  /** Refuse if an administrator exists: the one-time set-up creates only the first one. */
  readonly onlyFirst: boolean;
}

/** Returns `created` or the reason for the refusal; a taken login is an expected outcome, since two requests may race for it. */
export const insertUserOnce: Procedure<UserInsert, 'created' | 'taken' | 'not_first'> = procedure(
  import.meta.url,
  'insertUserOnce',
  async (transaction, user) => {
    if (user.onlyFirst && (await transaction.run(anyAdministratorSql, [])).length > 0) return 'not_first';
    const verifiedKey = user.isEmailVerified ? emailKey(user.email) : null;
    const key = loginKey(user.login);
    const taken = await transaction.run(takeLoginSql, [key, 'user', user.id]);
    if (taken.length === 0) return 'taken';
    if (user.isEmailVerified) await checkEmailFree(transaction, user.email);
    const passwordChangedAtMs = user.passwordHash === null ? null : user.nowMs;
    await transaction.run(insertUserSql, [
      user.id,
      user.login,
      key,
      user.name,
      user.email,
      user.isAdmin ? 1 : 0,
      user.passwordHash,
      passwordChangedAtMs,
      user.nowMs,
      verifiedKey,
      user.hasDelegatedAccess ? 1 : 0,
    ]);
    await transaction.runAll(user.statements);
    return 'created';
  },
);

/** Throws `invalid` for a login that is not allowed, and `conflict` if a person or an organization has it already. */
export async function createUser(
  store: Store,
  world: World,
  user: NewUser,
  statementsFor: StatementsForUser = () => [],
): Promise<User> {
  const id = createOwnerId(world);
  return create(store, world, { ...user, id, statements: statementsFor(id), onlyFirst: false });
}

/** Creates the first administrator, even if other people have accounts. Throws `conflict` if there is an administrator. */
export async function createFirstAdministrator(
  store: Store,
  world: World,
  user: Omit<NewUser, 'isAdmin'>,
  statementsFor: StatementsForUser = () => [],
): Promise<User> {
  const id = createOwnerId(world);
  return create(store, world, { ...user, id, statements: statementsFor(id), isAdmin: true, onlyFirst: true });
}

async function create(store: Store, world: World, user: Omit<UserInsert, 'nowMs'>): Promise<User> {
  checkLogin(user.login);
  checkProfile(user);
  const insert: UserInsert = { ...user, nowMs: world.nowMs() };
  const outcome = await store.call(insertUserOnce, insert);
  if (outcome === 'taken')
    throw new Failure('conflict', `Cannot create the user: the login "${user.login}" is taken`, { field: 'login' });
  if (outcome === 'not_first')
    throw new Failure('conflict', 'Cannot set up the service: it already has an administrator');
  return {
    id: insert.id,
    login: insert.login,
    name: insert.name,
    email: insert.email,
    isEmailVerified: insert.email !== null && insert.isEmailVerified === true,
    isAdmin: insert.isAdmin,
    createdAtMs: insert.nowMs,
    disabledAtMs: null,
    passwordChangedAtMs: insert.passwordHash === null ? null : insert.nowMs,
    credentialGeneration: 0,
    language: null,
    hasDelegatedAccess: insert.hasDelegatedAccess === true,
    administratorSinceMs: null,
  };
}

export interface Profile {
  readonly name: string;
  readonly email: string | null;
}

/** Throws `invalid` for a name or an address that is not allowed. `storedName`, which the person has now, is always allowed. */
export function checkProfile({ name, email }: Profile, storedName?: string): void {
  checkName(name, storedName);
  if (email !== null) checkEmail(email);
}

/** Ends every session of the person, and every code, device code and token of applications. */
export function raiseCredentialGenerationStatement(userId: string): BoundStatement {
  return { statement: raiseEpochSql, parameters: [userId] };
}

export function disableUserStatement(userId: string, nowMs: number) {
  return { statement: disableUserSql, parameters: [userId, nowMs] };
}

export function enableUserStatement(userId: string) {
  return { statement: enableUserSql, parameters: [userId] };
}

export function setAdminStatement(userId: string, isAdmin: 0 | 1) {
  return { statement: setAdminSql, parameters: [userId, isAdmin] };
}
