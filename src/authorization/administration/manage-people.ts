/** Creates, changes and disables accounts: the rules for pages, API and commands. */
import { Failure } from '../../errors.ts';
import type { Actor } from '../../operations/operation.ts';
import { type AccessChange, changeAccessOnce, changePersonOnce, promoteOnce } from '../accounts/access-store.ts';
import { disableOrDemote } from '../accounts/administrator-store.ts';
import { type AuditEvent, kindOfNewPassword } from '../accounts/audit-store.ts';
import { verifyEmail } from '../accounts/email-store.ts';
import { setPasswordStatement } from '../accounts/password-store.ts';
import { endOtherSessionsStatement } from '../accounts/session-store.ts';
import { deleteRecoveryCodesStatement, stopTotpStatement } from '../accounts/totp-store.ts';
import {
  createUser,
  disableUserStatement,
  enableUserStatement,
  raiseCredentialGenerationStatement,
  setAdminStatement,
  type User,
} from '../accounts/user-store.ts';
import { checkNewPassword, hashPassword } from '../sign-in/password.ts';
import { prepareEndedCount } from '../tokens/ended-tokens-store.ts';
import { deletePersonalTokens } from '../tokens/personal-token-store.ts';
import { checkAllRights, findChangeable, findPerson, type PeopleDependencies, recordStatement } from './person.ts';

export interface NewPerson {
  readonly login: string;
  readonly name: string;
  readonly email: string | null;
  readonly isAdmin: boolean;
  /** Null for an account without a password. */
  readonly password: string | null;
}

export async function createPerson(
  { store, world }: PeopleDependencies,
  actor: Actor,
  { password, ...person }: NewPerson,
): Promise<User> {
  if (person.isAdmin) checkAllRights(actor);
  const passwordHash = password === null ? null : await hashNewPassword(actor, person.login, password);
  const hasDelegatedAccess = !actor.isAdmin;
  const user = { ...person, isEmailVerified: person.email !== null, passwordHash, hasDelegatedAccess };
  return await createUser(store, world, user, (userId) => [
    recordStatement({ kind: 'user_created', userId }, actor, world.nowMs()),
  ]);
}

/** Ends the person's sessions and stops their tokens. The tokens work again when the person is enabled. */
export async function disablePerson(dependencies: PeopleDependencies, actor: Actor, login: string): Promise<void> {
  const { store, world } = dependencies;
  const upstreamIssuer = dependencies.upstream?.config.issuer;
  const { id: userId } = await findChangeable(store, actor, login);
  if (userId === actor.userId) throw new Failure('conflict', 'Cannot disable the user: it is your own account');
  const nowMs = world.nowMs();
  const statements = [
    endOtherSessionsStatement(userId, ''),
    recordStatement({ kind: 'user_disabled', userId }, actor, nowMs),
  ];
  const change = disableUserStatement(userId, nowMs);
  await disableOrDemote(store, { userId, hasAllRights: actor.isAdmin, upstreamIssuer, change, statements });
}

export async function enablePerson(dependencies: PeopleDependencies, actor: Actor, login: string): Promise<void> {
  const { store, world } = dependencies;
  const { id: userId } = await findChangeable(store, actor, login);
  const audit = recordStatement({ kind: 'user_enabled', userId }, actor, world.nowMs());
  const change = enableUserStatement(userId);
  await store.call(changePersonOnce, { userId, hasAllRights: actor.isAdmin, change, statements: [audit] });
}

export interface PasswordReset {
  readonly login: string;
  readonly password: string;
  readonly deleteTokens: boolean;
}

/** Sets the password, ends the sessions and the access of applications, and deletes the personal tokens if requested. */
export async function resetPassword(
  dependencies: PeopleDependencies,
  actor: Actor,
  { login, password, deleteTokens }: PasswordReset,
): Promise<void> {
  const user = await findChangeable(dependencies.store, actor, login);
  const { id: userId } = user;
  const nowMs = dependencies.world.nowMs();
  const hash = await hashNewPassword(actor, login, password);
  const revoked = { kind: 'personal_token_revoked', userId, details: { which: 'all' } } as const;
  const countEnded = await prepareEndedCount(dependencies, { reason: 'password', userId, endsPersonal: deleteTokens });
  await changeAccess(dependencies, actor, {
    userId,
    event: { kind: kindOfNewPassword(user), details: { tokens_revoked: deleteTokens } },
    statements: [setPasswordStatement(userId, hash, nowMs), endOtherSessionsStatement(userId, '')],
    changes: deleteTokens ? [deletePersonalTokens(userId, recordStatement(revoked, actor, nowMs))] : [],
  });
  countEnded();
}

/** Turns the second step off. Throws `not_found` if the person has none. */
export async function resetSecondStep(dependencies: PeopleDependencies, actor: Actor, login: string): Promise<void> {
  const { id: userId } = await findChangeable(dependencies.store, actor, login);
  const countEnded = await prepareEndedCount(dependencies, { reason: 'second_step', userId });
  await changeAccess(dependencies, actor, {
    userId,
    event: { kind: 'totp_disabled' },
    required: { change: stopTotpStatement(userId), refusal: `Cannot turn off the second step: ${login} has none` },
    statements: [
      deleteRecoveryCodesStatement(userId),
      raiseCredentialGenerationStatement(userId),
      endOtherSessionsStatement(userId, ''),
    ],
  });
  countEnded();
}

export interface RoleChange {
  readonly login: string;
  readonly isAdmin: boolean;
}

/**
 * Gives or takes the role. Throws `conflict` for the last administrator who can sign in. Returns true if all ways to sign in of
 * a new administrator have ended, because a token without all rights may have set one of them.
 */
export async function setAdministrator(
  dependencies: PeopleDependencies,
  actor: Actor,
  { login, isAdmin }: RoleChange,
): Promise<boolean> {
  checkAllRights(actor);
  const { store, world } = dependencies;
  const { id: userId } = await findPerson(store, login);
  const kind = isAdmin ? 'administrator_added' : 'administrator_removed';
  const nowMs = world.nowMs();
  const audit = recordStatement({ kind, userId }, actor, nowMs);
  if (!isAdmin) {
    const change = setAdminStatement(userId, 0);
    const upstreamIssuer = dependencies.upstream?.config.issuer;
    await disableOrDemote(store, { userId, hasAllRights: true, upstreamIssuer, change, statements: [audit] });
    return false;
  }
  const countEnded = await prepareEndedCount(dependencies, { reason: 'promotion', userId, endsPersonal: true });
  const endedAccess = await store.call(promoteOnce, { userId, nowMs, audit });
  if (endedAccess) countEnded();
  return endedAccess;
}

export interface EmailChange {
  readonly login: string;
  readonly email: string;
  /** The address that the actor saw; if it is absent, any address is replaced. */
  readonly seenEmail?: string;
}

/** Marks an address as verified because the actor vouches for it. */
export async function setEmail(
  { store, world }: PeopleDependencies,
  actor: Actor,
  { login, email, seenEmail }: EmailChange,
): Promise<void> {
  const { id: userId } = await findChangeable(store, actor, login);
  const event = { kind: 'user_changed', userId, details: { what: 'email' } } as const;
  const audit = recordStatement(event, actor, world.nowMs());
  const seen = seenEmail === undefined ? {} : { seenEmail };
  await verifyEmail(store, { userId, email, ...seen, hasAllRights: actor.isAdmin, statements: [audit] });
}

/** Verifies the address that the person gave. Throws `conflict` if it is no longer the one that the actor saw. */
export async function verifyOwnEmail(
  dependencies: PeopleDependencies,
  actor: Actor,
  { login, email }: { readonly login: string; readonly email: string },
): Promise<void> {
  await setEmail(dependencies, actor, { login, email, seenEmail: email });
}

interface RecordedAccess extends Omit<AccessChange, 'hasAllRights'> {
  readonly event: AuditEvent;
}

async function changeAccess(
  { store, world }: PeopleDependencies,
  actor: Actor,
  { event, statements, ...change }: RecordedAccess,
): Promise<void> {
  const audit = recordStatement({ ...event, userId: change.userId }, actor, world.nowMs());
  await store.call(changeAccessOnce, { ...change, hasAllRights: actor.isAdmin, statements: [...statements, audit] });
}

function hashNewPassword(actor: Actor, login: string, password: string): Promise<string> {
  checkNewPassword(password, { login });
  return actor.userId === undefined
    ? hashPassword(password)
    : hashPassword(password, { key: actor.userId, isKnown: true });
}
