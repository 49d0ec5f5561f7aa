/**
 * Serves the page of one person, where administrators disable, reset and change the account. Each change asks for confirmation;
 * those that give a way to sign in need a recent sign-in.
 */
import { Failure } from '../../errors.ts';
import type { Actor } from '../../operations/operation.ts';
import type { Mistake } from '../../pages/elements.ts';
import { readField, toMistake } from '../../pages/page-routes.ts';
import { findDone } from '../../pages/signed-in-pages.ts';
import type { AccountPages, PageRequest, Submission } from '../account-pages/account-pages.ts';
import { checkAdmin } from '../account-pages/activity-routes.ts';
import { askToSignInAgain } from '../account-pages/recent-sign-in.ts';
import { redirectWithSecret, takeOnce } from '../account-pages/shown-once.ts';
import { listPasskeys } from '../accounts/passkey-store.ts';
import { hasTotp } from '../accounts/totp-store.ts';
import type { User } from '../accounts/user-store.ts';
import { orderPasswordLink } from '../administration/invite-people.ts';
import {
  disablePerson,
  enablePerson,
  resetSecondStep,
  setAdministrator,
  verifyOwnEmail,
} from '../administration/manage-people.ts';
import type { UserState } from '../administration/people-store.ts';
import { findPersonState } from '../administration/person.ts';
import { readMessages } from '../messages/messages.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import { PEOPLE, pathOfPerson } from './people-view.ts';
import { type ChangeName, isMade, listChanges, renderChange, renderPerson } from './person-view.ts';

const PERSON = `${PEOPLE}/:login`;

/** A signed-in administrator has all the rights of the role. */
export function readSignedInActor({ c, session: { user } }: PageRequest): Actor {
  return { userId: user.id, login: user.login, isAdmin: true, address: clientAddress(c) };
}

export function addPersonRoutes({ context, page, form }: AccountPages): void {
  page(PERSON, async (request) => {
    checkAdmin(request);
    return showPerson(context, request, await findOpened(context, request));
  });

  page(`${PERSON}/:change`, async (request) => {
    checkAdmin(request);
    const user = await findOpened(context, request);
    const change = await readChange(context, request, user);
    return askForRecent(context, request, { user, change }) ?? showChange(context, request, { user, change });
  });

  form(`${PERSON}/:change`, async (submission) => {
    const messages = readMessages(submission.c);
    checkAdmin(submission);
    const user = await findOpened(context, submission);
    const asked = submission.c.req.param('change');
    const seenEmail = readField(submission.form, 'email');
    if (isMade(asked, { user, hasTotp: await hasTotp(context.store, user.id), seenEmail }))
      return submission.c.redirect(`${pathOfPerson(user.login)}?done=${asked}`, 303);
    // Another address was verified meanwhile: the change then fails with the message that the account has another one.
    const isOutdated = asked === 'verify-email' && user.isEmailVerified;
    const change = isOutdated ? asked : await readChange(context, submission, user);
    const again = askForRecent(context, submission, { user, change });
    if (again !== undefined) return again;
    try {
      return await makeChange(context, submission, { user, change });
    } catch (error) {
      return showChange(context, submission, { user, change, mistake: toMistake(messages, error) });
    }
  });
}

function findOpened({ store }: AccountPages['context'], { c }: PageRequest): Promise<UserState> {
  return findPersonState(store, c.req.param('login') ?? '');
}

async function readChange(
  { store }: AccountPages['context'],
  { c, session }: PageRequest,
  user: User,
): Promise<ChangeName> {
  const messages = readMessages(c);
  const name = c.req.param('change');
  const changes = listChanges(user, { administrator: session.user, hasTotp: await hasTotp(store, user.id) });
  const change = changes.find((one) => one === name);
  if (change === undefined) throw new Failure('not_found', messages.error.notFound);
  return change;
}

const NEED_RECENT_SIGN_IN: ReadonlySet<ChangeName> = new Set([
  'password-link',
  'verify-email',
  'reset-second-step',
  'make-admin',
]);

interface Change {
  readonly user: User;
  readonly change: ChangeName;
  readonly mistake?: Mistake | undefined;
}

function askForRecent(
  context: AccountPages['context'],
  request: PageRequest,
  { user, change }: Change,
): Response | undefined {
  if (!NEED_RECENT_SIGN_IN.has(change)) return undefined;
  return askToSignInAgain(request, context, `${pathOfPerson(user.login)}/${change}`);
}

const CHANGES: Readonly<
  Record<
    Exclude<ChangeName, 'password-link' | 'verify-email'>,
    (context: AccountPages['context'], actor: Actor, login: string) => Promise<unknown>
  >
> = {
  disable: disablePerson,
  enable: enablePerson,
  'reset-second-step': resetSecondStep,
  'make-admin': (context, actor, login) => setAdministrator(context, actor, { login, isAdmin: true }),
  'unmake-admin': (context, actor, login) => setAdministrator(context, actor, { login, isAdmin: false }),
};

async function makeChange(
  context: AccountPages['context'],
  submission: Submission,
  { user: { login }, change }: Change,
): Promise<Response> {
  const path = pathOfPerson(login);
  if (change === 'verify-email') {
    await verifyOwnEmail(context, readSignedInActor(submission), { login, email: readField(submission.form, 'email') });
    return submission.c.redirect(`${path}?done=verify-email`, 303);
  }
  if (change !== 'password-link') {
    const endedAccess = await CHANGES[change](context, readSignedInActor(submission), login);
    return submission.c.redirect(`${path}?done=${endedAccess === true ? 'ended-access' : change}`, 303);
  }
  const sendsMail = readField(submission.form, 'way') === 'mail';
  const { language } = readMessages(submission.c);
  const link = await orderPasswordLink(context, readSignedInActor(submission), { login, sendsMail, language });
  if (sendsMail) return submission.c.redirect(`${path}?done=mailed`, 303);
  return redirectWithSecret(context, submission, { path, texts: [link.url] });
}

async function showPerson(context: AccountPages['context'], request: PageRequest, user: UserState): Promise<Response> {
  const messages = readMessages(request.c);
  const { c, session, show } = request;
  const [totp, passkeys, link] = await Promise.all([
    hasTotp(context.store, user.id),
    listPasskeys(context.store, user.id),
    takeOnce(context, request),
  ]);
  const content = renderPerson(messages, {
    user,
    hasTotp: totp,
    passkeys: passkeys.length,
    changes: listChanges(user, { administrator: session.user, hasTotp: totp }),
    done: findDone(c, messages.person.done),
    link: link.texts[0],
    isLinkSpent: link.isSpent,
  });
  return show({ title: user.login, here: PEOPLE, content });
}

function showChange(
  context: AccountPages['context'],
  { c, session, show }: PageRequest,
  { user, change, mistake }: Change,
): Promise<Response> {
  const messages = readMessages(c);
  const canMail = context.mailer !== undefined && user.email !== null && user.isEmailVerified;
  const content = renderChange(messages, { user, change, canMail, mistake, csrfToken: session.csrfToken });
  const title = messages.changes[change].title(user.login);
  const at = mistake && user.isEmailVerified && change === 'verify-email' ? pathOfPerson(user.login) : undefined;
  return show({ title, here: PEOPLE, content, at }, { status: mistake ? 422 : 200 });
}
