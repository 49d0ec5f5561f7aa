/** Creates accounts with an invitation by mail, and links with which people choose a new password. */
import type { BoundStatement, Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import type { Actor } from '../../operations/operation.ts';
import { changeAccessOnce } from '../accounts/access-store.ts';
import { createUser, findUserById, type User } from '../accounts/user-store.ts';
import {
  createPasswordLink,
  type LinkDependencies,
  type LinkPurpose,
  mailLinkStatement,
  type PasswordLink,
} from '../password-links/password-link.ts';
import { findChangeable, recordStatement } from './person.ts';

export interface Invitation {
  readonly login: string;
  readonly name: string;
  readonly email: string | null;
  readonly sendsMail: boolean;
  readonly language?: InviterLanguage;
}

/** The language of the mail if its reader has chosen none; if undefined, that of the inviting person's account. */
type InviterLanguage = string | undefined;

/** Creates an account without a way to sign in, and the link with which its person chooses a password. */
export async function invitePerson(
  dependencies: LinkDependencies,
  actor: Actor,
  invitation: Invitation,
): Promise<PasswordLink> {
  checkInvitation(dependencies, invitation);
  const { store, world } = dependencies;
  const { login, name, email, sendsMail } = invitation;
  const language = invitation.language ?? (await findLanguageOf(store, actor));
  const person = {
    login,
    name,
    email,
    isEmailVerified: email !== null,
    isAdmin: false,
    passwordHash: null,
    hasDelegatedAccess: !actor.isAdmin,
  };
  const created = Promise.withResolvers<PasswordLink>();
  await createUser(store, world, person, (id) => {
    const owner = { id, credentialGeneration: 0, isAdmin: false };
    const mailedTo = sendsMail ? email : null;
    const link = createPasswordLink(dependencies, owner, { purpose: 'invitation', mailedTo });
    created.resolve(link);
    return [
      link.statement,
      ...recordInvitation(actor, { userId: id, sendsMail }, world.nowMs()),
      ...listMailStatements(dependencies, {
        link,
        to: { name, login, email, language },
        purpose: 'invitation',
        sendsMail,
      }),
    ];
  });
  return await created.promise;
}

function checkInvitation(dependencies: LinkDependencies, { email, sendsMail }: Invitation): void {
  if (sendsMail && email === null)
    throw new Failure('invalid', 'Cannot send the invitation: it needs an email address', { field: 'email' });
  checkMail(dependencies, { email, sendsMail });
}

function recordInvitation(
  actor: Actor,
  { userId, sendsMail }: { readonly userId: string; readonly sendsMail: boolean },
  nowMs: number,
): BoundStatement[] {
  return [
    recordStatement({ kind: 'user_created', userId }, actor, nowMs),
    recordStatement({ kind: 'user_invited', userId, details: { sent: describeWay(sendsMail) } }, actor, nowMs),
  ];
}

export interface LinkOrder {
  readonly login: string;
  readonly sendsMail: boolean;
  readonly language?: InviterLanguage;
}

/** Creates a link to choose a password. A person who has no way to sign in yet gets the invitation again. */
export async function orderPasswordLink(
  dependencies: LinkDependencies,
  actor: Actor,
  { login, sendsMail, language: given }: LinkOrder,
): Promise<PasswordLink> {
  const { store, world } = dependencies;
  const user = await findChangeable(store, actor, login);
  // Never mail a link to an unverified address: the person, or a thief of their session, may have typed it.
  const email = user.isEmailVerified ? user.email : null;
  checkMail(dependencies, { email, sendsMail });
  if (user.disabledAtMs !== null)
    throw new Failure('conflict', 'Cannot create the link: the account is disabled', { field: 'login' });
  const purpose = user.isInvited ? 'invitation' : 'reset';
  const link = createPasswordLink(dependencies, user, { purpose, mailedTo: sendsMail ? email : null });
  const language = user.language ?? given ?? (await findLanguageOf(store, actor));
  const details = { purpose, sent: describeWay(sendsMail) };
  await store.call(changeAccessOnce, {
    userId: user.id,
    hasAllRights: actor.isAdmin,
    statements: [
      link.statement,
      recordStatement({ kind: 'password_link_created', userId: user.id, details }, actor, world.nowMs()),
      ...listMailStatements(dependencies, { link, to: { ...user, email, language }, purpose, sendsMail }),
    ],
  });
  return link;
}

/** Returns null, for the default language, without a choice and for a command on the store. */
async function findLanguageOf(store: Store, { userId }: Actor): Promise<string | null> {
  return userId === undefined ? null : ((await findUserById(store, userId))?.language ?? null);
}

function describeWay(sendsMail: boolean): string {
  return sendsMail ? 'by mail' : 'shown to the administrator';
}

function checkMail(
  { mailer }: LinkDependencies,
  { email, sendsMail }: { readonly email: string | null; readonly sendsMail: boolean },
): void {
  if (!sendsMail) return;
  if (mailer === undefined) throw new Failure('conflict', 'Cannot send the link: this service sends no mail');
  if (email === null)
    throw new Failure('invalid', 'Cannot send the link: the account has no verified email address', { field: 'email' });
}

interface LinkMail {
  readonly link: PasswordLink;
  readonly to: Pick<User, 'name' | 'login' | 'email' | 'language'>;
  readonly purpose: LinkPurpose;
  readonly sendsMail: boolean;
}

function listMailStatements({ mailer, baseUrl }: LinkDependencies, { link, to, purpose, sendsMail }: LinkMail) {
  if (!sendsMail || mailer === undefined || to.email === null) return [];
  return [mailLinkStatement(mailer, { link, to: { ...to, email: to.email }, purpose, service: baseUrl })];
}
