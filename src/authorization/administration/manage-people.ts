/** Creating and changing accounts: the rules, shared by the pages, the administration API and the command line. */
import type { BoundStatement } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import type { Actor } from '../../operations/operation.ts';
import { withdraw } from '../accounts/administrator-store.ts';
import type { AuditKind } from '../accounts/audit-store.ts';
import { verifyEmail } from '../accounts/email-store.ts';
import { setPasswordStatement } from '../accounts/password-store.ts';
import { endOtherSessionsStatement } from '../accounts/session-store.ts';
import { deleteTotpStatements } from '../accounts/totp-store.ts';
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
import { deletePersonalTokensStatement } from '../tokens/personal-token-store.ts';
import { checkAllRights, findChangeable, findPerson, type PeopleDependencies, recordStatement } from './person.ts';

export interface NewPerson {
  readonly login: string;
  readonly name: string;
  readonly email: string | null;
  readonly isAdmin: boolean;
  /** Null: the person has none yet. */
  readonly password: string | null;
}

export async function createPerson(
  { store, world }: PeopleDependencies,
  actor: Actor,
  { password, ...person }: NewPerson,
): Promise<User> {
  if (person.isAdmin) checkAllRights(actor);
  const passwordHash = password === null ? null : await hashNewPassword(actor, person.login, password);
  const user = { ...person, isEmailVerified: person.email !== null, passwordHash };
  return await createUser(store, world, user, (userId) => [
    recordStatement({ kind: 'user_created', userId }, actor, world.nowMs()),
  ]);
}

/** Disabled, a person's sessions end and their tokens stop; enabled again, the tokens live on. */
export async function disablePerson(dependencies: PeopleDependencies, actor: Actor, login: string): Promise<void> {
  const { store, world } = dependencies;
  const { id: userId } = await findChangeable(store, actor, login);
  if (userId === actor.userId) throw new Failure('conflict', 'Cannot disable the user: it is yourself');
  const nowMs = world.nowMs();
  const statements = [
    disableUserStatement(userId, nowMs),
    endOtherSessionsStatement(userId, ''),
    recordStatement({ kind: 'user_disabled', userId }, actor, nowMs),
  ];
  await withdraw(store, { userId, statements });
}

export async function enablePerson(dependencies: PeopleDependencies, actor: Actor, login: string): Promise<void> {
  await changePerson(dependencies, actor, login, {
    kind: 'user_enabled',
    listStatements: (user) => [enableUserStatement(user.id)],
  });
}

export interface PasswordReset {
  readonly login: string;
  readonly password: string;
  readonly deleteTokens: boolean;
}

/** Ends the sessions and the access of applications, and the personal tokens too when asked. */
export async function resetPassword(
  dependencies: PeopleDependencies,
  actor: Actor,
  { login, password, deleteTokens }: PasswordReset,
): Promise<void> {
  const { id: userId } = await findChangeable(dependencies.store, actor, login);
  const hash = await hashNewPassword(actor, login, password);
  const countEnded = await prepareEndedCount(dependencies, { reason: 'password', userId, endsPersonal: deleteTokens });
  await changePerson(dependencies, actor, login, {
    kind: 'password_changed',
    listStatements: (user) => [
      setPasswordStatement(user.id, hash, dependencies.world.nowMs()),
      endOtherSessionsStatement(user.id, ''),
      ...(deleteTokens ? [deletePersonalTokensStatement(user.id)] : []),
    ],
  });
  countEnded();
}

export async function resetSecondStep(dependencies: PeopleDependencies, actor: Actor, login: string): Promise<void> {
  const { id: userId } = await findChangeable(dependencies.store, actor, login);
  const countEnded = await prepareEndedCount(dependencies, { reason: 'second_step', userId });
  await changePerson(dependencies, actor, login, {
    kind: 'totp_disabled',
    listStatements: (user) => [
      ...deleteTotpStatements(user.id),
      raiseCredentialGenerationStatement(user.id),
      endOtherSessionsStatement(user.id, ''),
    ],
  });
  countEnded();
}

export interface RoleChange {
  readonly login: string;
  readonly isAdmin: boolean;
}

/** The last administrator who can sign in stays one. */
export async function setAdministrator(
  dependencies: PeopleDependencies,
  actor: Actor,
  { login, isAdmin }: RoleChange,
): Promise<void> {
  checkAllRights(actor);
  const { store, world } = dependencies;
  const { id: userId } = await findPerson(store, login);
  const kind = isAdmin ? 'administrator_added' : 'administrator_removed';
  const statements = [
    setAdminStatement(userId, isAdmin ? 1 : 0),
    recordStatement({ kind, userId }, actor, world.nowMs()),
  ];
  if (isAdmin) await store.writeAll(statements);
  else await withdraw(store, { userId, statements });
}

/** As verified, on the actor's word. */
export async function setEmail(
  { store, world }: PeopleDependencies,
  actor: Actor,
  { login, email }: { readonly login: string; readonly email: string },
): Promise<void> {
  const { id: userId } = await findChangeable(store, actor, login);
  const event = { kind: 'user_changed', userId, details: { what: 'email' } } as const;
  await verifyEmail(store, { userId, email, statements: [recordStatement(event, actor, world.nowMs())] });
}

interface PersonChange {
  readonly kind: AuditKind;
  readonly listStatements: (user: User) => readonly BoundStatement[];
}

async function changePerson(
  { store, world }: PeopleDependencies,
  actor: Actor,
  login: string,
  { kind, listStatements }: PersonChange,
): Promise<void> {
  const user = await findChangeable(store, actor, login);
  await store.writeAll([...listStatements(user), recordStatement({ kind, userId: user.id }, actor, world.nowMs())]);
}

function hashNewPassword(actor: Actor, login: string, password: string): Promise<string> {
  checkNewPassword(password, { login });
  return actor.userId === undefined
    ? hashPassword(password)
    : hashPassword(password, { key: actor.userId, isKnown: true });
}
