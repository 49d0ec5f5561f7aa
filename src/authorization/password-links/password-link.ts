/**
 * Creates and checks links for invitations and password resets: when they expire, and what ends them sooner. A link is a
 * one-time token of one person and one credential generation: any new password makes all earlier links invalid, so each works
 * once. A link for an ordinary person ends when the person becomes an administrator: its creator, or someone who intercepted it,
 * may have fewer rights than the account has now. A mailed link ends when its address is no longer the verified one of the
 * account: the former address may have been mistyped and belong to a stranger.
 */
import type { BoundStatement } from '../../database/store.ts';
import type { Mailer } from '../../mail/mailer.ts';
import { emailKey } from '../accounts/email-store.ts';
import {
  createOneTimeToken,
  dropOneTimeTokenStatement,
  findOneTimeToken,
  type OneTimeTokenDependencies,
} from '../accounts/one-time-token-store.ts';
import { changePasswordOnce } from '../accounts/password-store.ts';
import { endOtherSessionsStatement } from '../accounts/session-store.ts';
import { findUserById, type User } from '../accounts/user-store.ts';
import { writeMail } from '../messages/mails.ts';
import { checkNewPassword, hashPassword } from '../sign-in/password.ts';
import { prepareEndedCount } from '../tokens/ended-tokens-store.ts';
import { deletePersonalTokens } from '../tokens/personal-token-store.ts';
import type { CountToken } from '../tokens/token-metrics.ts';

export type LinkPurpose = 'invitation' | 'forgotten' | 'reset';

export interface LinkDependencies extends OneTimeTokenDependencies {
  /** Where browsers reach the pages. */
  readonly baseUrl: string;
  /** Undefined: mail is off. */
  readonly mailer?: Mailer | undefined;
  /** Absent for commands, whose metrics are never scraped. */
  readonly countToken?: CountToken | undefined;
}

const HOUR_MS = 3_600_000;
export const LINK_LIFETIMES_MS: Readonly<Record<LinkPurpose, number>> = {
  invitation: 7 * 24 * HOUR_MS,
  forgotten: HOUR_MS,
  reset: 24 * HOUR_MS,
};

interface LinkContent {
  readonly userId: string;
  readonly credentialGeneration: number;
  /** Whether the person was an administrator then; absent in links of earlier releases. */
  readonly isAdmin?: boolean;
  readonly purpose: LinkPurpose;
  /** The key of the address that the link was mailed to; null for a link that was shown; absent in links of earlier releases. */
  readonly mailedTo?: string | null;
}

export interface PasswordLink {
  readonly url: string;
  readonly expiresAtMs: number;
  /** Stores the link; execute it in one transaction with its audit event. */
  readonly statement: BoundStatement;
}

type Owner = Pick<User, 'id' | 'credentialGeneration' | 'isAdmin'>;

export interface LinkOptions {
  readonly purpose: LinkPurpose;
  /** The address that the link is mailed to; null for a link that is shown. */
  readonly mailedTo: string | null;
}

export function createPasswordLink(
  dependencies: LinkDependencies,
  owner: Owner,
  { purpose, mailedTo }: LinkOptions,
): PasswordLink {
  const { world, baseUrl } = dependencies;
  const lifetimeMs = LINK_LIFETIMES_MS[purpose];
  const { id: userId, credentialGeneration, isAdmin } = owner;
  const content: LinkContent = { userId, credentialGeneration, isAdmin, purpose, mailedTo: emailKey(mailedTo) };
  const { token, statement } = createOneTimeToken(dependencies, 'password-link', { content, lifetimeMs });
  // In the query, which is never logged; a path would be.
  return { url: `${baseUrl}/password?token=${token}`, expiresAtMs: world.nowMs() + lifetimeMs, statement };
}

/** Queues the mail with the link. With an empty address in `to`, the mail is never sent. */
export function mailLinkStatement(mailer: Mailer, { link, to, purpose, service }: MailedLink): BoundStatement {
  const mail = writeMail(to.language, purpose, { name: to.name, login: to.login, url: link.url, service });
  return mailer.queueStatement({ ...mail, to: to.email }, LINK_LIFETIMES_MS[purpose]);
}

export interface MailedLink {
  readonly link: PasswordLink;
  readonly to: Pick<User, 'name' | 'login' | 'language'> & { readonly email: string };
  readonly purpose: LinkPurpose;
  /** The URL of the service, as the mail names it. */
  readonly service: string;
}

export interface OpenedLink {
  readonly user: User;
  readonly purpose: LinkPurpose;
  /** The key of the address that the account must still have verified; null for any. */
  readonly mailedTo: string | null;
}

/**
 * Returns undefined if the link was used, has expired or is unknown, or if its person is disabled, has become an administrator or
 * no longer has the verified address that the link was mailed to.
 */
export async function openPasswordLink(dependencies: LinkDependencies, token: string): Promise<OpenedLink | undefined> {
  const content = await findOneTimeToken<LinkContent>(dependencies, 'password-link', token);
  const user = content && (await findUserById(dependencies.store, content.userId));
  if (user === undefined || content === undefined || user.disabledAtMs !== null) return undefined;
  if (user.isAdmin && content.isAdmin !== true) return undefined;
  if (user.credentialGeneration !== content.credentialGeneration) return undefined;
  const { purpose, mailedTo = null } = content;
  const hasAddress = mailedTo === null || (user.isEmailVerified && emailKey(user.email) === mailedTo);
  return hasAddress ? { user, purpose, mailedTo } : undefined;
}

export interface ChosenPassword {
  readonly token: string;
  readonly link: OpenedLink;
  readonly password: string;
  readonly deletesTokens: boolean;
  /** Recorded with the new password. */
  readonly audit: BoundStatement;
  /** Recorded if personal tokens are deleted. */
  readonly tokensAudit: BoundStatement;
}

/** Sets the password. Returns false if the link became invalid meanwhile. Throws `invalid` for a password that is not allowed. */
export async function choosePassword(dependencies: LinkDependencies, chosen: ChosenPassword): Promise<boolean> {
  const { store, world, mailer } = dependencies;
  const { user } = chosen.link;
  checkNewPassword(chosen.password, user);
  const passwordHash = await hashPassword(chosen.password, { key: user.id, isKnown: true });
  const ending = { reason: 'password', userId: user.id, endsPersonal: chosen.deletesTokens } as const;
  const countEnded = await prepareEndedCount(dependencies, ending);
  const isChanged = await store.call(changePasswordOnce, {
    userId: user.id,
    credentialGeneration: user.credentialGeneration,
    isAdmin: user.isAdmin,
    verifiedEmailKey: chosen.link.mailedTo,
    passwordHash,
    nowMs: world.nowMs(),
    statements: [
      dropOneTimeTokenStatement(chosen.token),
      endOtherSessionsStatement(user.id, ''),
      chosen.audit,
      ...(chosen.link.purpose === 'invitation' ? [] : listConfirmStatements(dependencies, mailer, user)),
    ],
    changes: chosen.deletesTokens ? [deletePersonalTokens(user.id, chosen.tokensAudit)] : [],
  });
  if (isChanged) countEnded();
  return isChanged;
}

/** Tells the owner by mail about the new password, which another person may have chosen. */
function listConfirmStatements(
  { baseUrl }: LinkDependencies,
  mailer: Mailer | undefined,
  user: User,
): BoundStatement[] {
  if (mailer === undefined || user.email === null || !user.isEmailVerified) return [];
  const mail = writeMail(user.language, 'changed', {
    name: user.name,
    login: user.login,
    url: `${baseUrl}/forgot-password`,
    service: baseUrl,
  });
  return [mailer.queueStatement({ ...mail, to: user.email })];
}
