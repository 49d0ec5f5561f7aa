/** Inviting people, and links with which they choose a new password. */
import { Failure } from '../../errors.ts';
import type { Actor } from '../../operations/operation.ts';
import { createUser, type User } from '../accounts/user-store.ts';
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
}

/** An account without a way to sign in, and the link with which its person gets one. */
export async function invitePerson(
  dependencies: LinkDependencies,
  actor: Actor,
  { login, name, email, sendsMail }: Invitation,
): Promise<PasswordLink> {
  const { store, world } = dependencies;
  checkMail(dependencies, { email, sendsMail });
  const person = { login, name, email, isEmailVerified: email !== null, isAdmin: false, passwordHash: null };
  const created = Promise.withResolvers<PasswordLink>();
  await createUser(store, world, person, (id) => {
    const link = createPasswordLink(dependencies, { id, credentialGeneration: 0, isAdmin: false }, 'invitation');
    created.resolve(link);
    return [
      link.statement,
      recordStatement({ kind: 'user_created', userId: id }, actor, world.nowMs()),
      recordStatement(
        { kind: 'user_invited', userId: id, details: { sent: describeWay(sendsMail) } },
        actor,
        world.nowMs(),
      ),
      ...listMailStatements(dependencies, {
        link,
        to: { name, login, email, language: null },
        purpose: 'invitation',
        sendsMail,
      }),
    ];
  });
  return await created.promise;
}

export interface LinkOrder {
  readonly login: string;
  readonly sendsMail: boolean;
}

/** For a person who has no password yet, this is the invitation again. */
export async function orderPasswordLink(
  dependencies: LinkDependencies,
  actor: Actor,
  { login, sendsMail }: LinkOrder,
): Promise<PasswordLink> {
  const { store, world } = dependencies;
  const user = await findChangeable(store, actor, login);
  // An address that the person typed, or a thief of their session, is not where a way in may be sent.
  const email = user.isEmailVerified ? user.email : null;
  checkMail(dependencies, { email, sendsMail });
  if (user.disabledAtMs !== null)
    throw new Failure('conflict', 'Cannot create the link: the account is disabled', { field: 'login' });
  const purpose = user.passwordChangedAtMs === null ? 'invitation' : 'reset';
  const link = createPasswordLink(dependencies, user, purpose);
  const details = { purpose, sent: describeWay(sendsMail) };
  await store.writeAll([
    link.statement,
    recordStatement({ kind: 'password_link_created', userId: user.id, details }, actor, world.nowMs()),
    ...listMailStatements(dependencies, { link, to: { ...user, email }, purpose, sendsMail }),
  ]);
  return link;
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
