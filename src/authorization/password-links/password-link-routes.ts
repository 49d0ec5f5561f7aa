/**
 * Serves the pages for forgotten passwords and invitations, with the same answer whether an account exists or not. A request for a
 * link also takes the same work in the store, so that its time reveals nothing.
 */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import type { Mailer } from '../../mail/mailer.ts';
import { respondPage } from '../../pages/page-response.ts';
import { createPageRoutes, readField, readForm } from '../../pages/page-routes.ts';
import { readRefused, redirectRefused } from '../../pages/refused-form.ts';
import { checkAttempt } from '../accounts/attempt-store.ts';
import { auditStatement, kindOfNewPassword } from '../accounts/audit-store.ts';
import { mailSubjects } from '../accounts/sign-in-throttle.ts';
import { findUserByLogin, findUserByVerifiedEmail, type User } from '../accounts/user-store.ts';
import { type Messages, readMessages } from '../messages/messages.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import { type SignInContext, toRefusedPassword, toRefusedWait } from '../sign-in/sign-in-context.ts';
import {
  type ChosenPassword,
  choosePassword,
  createPasswordLink,
  mailLinkStatement,
  type OpenedLink,
  openPasswordLink,
} from './password-link.ts';
import { renderChoosePage, renderForgotPage, renderMailOffPage, renderSentPage } from './password-link-pages.ts';

const FORGOT = '/forgot-password';
const CHOOSE = '/password';

/** Creates the routes, which must be mounted at `/`, beside the sign-in. */
export function createPasswordLinkRoutes(context: SignInContext): OpenAPIHono<HttpEnv> {
  const routes = createPageRoutes(context.respondRefusal);
  routes.get(FORGOT, (c) => showForgot(c, context));
  routes.post(FORGOT, (c) => askForLink(c, context));
  routes.get(CHOOSE, (c) => showChoose(c, context));
  routes.post(CHOOSE, (c) => choose(c, context));
  return routes;
}

function showForgot(c: Context<HttpEnv>, context: SignInContext): Promise<Response> {
  const messages = readMessages(c);
  if (context.mailer === undefined) return respondPage(c, renderMailOffPage(messages));
  if (c.req.query('done') === 'sent') return respondPage(c, renderSentPage(messages));
  const browser = context.issueFormToken(c);
  const refused = readRefused(context, c, browser);
  const page = renderForgotPage(messages, { csrfToken: browser, refused });
  return respondPage(c, page, { status: refused?.status, withScript: true });
}

async function askForLink(c: Context<HttpEnv>, context: SignInContext): Promise<Response> {
  const form = await readForm(c);
  context.checkSignedOutForm(c, form);
  if (context.mailer === undefined) return c.redirect(FORGOT, 303);
  const typed = readField(form, 'who').trim().slice(0, 320);
  const subjects = mailSubjects(typed, clientAddress(c));
  try {
    await checkAttempt(context.store, { subjects, nowMs: context.world.nowMs() });
  } catch (error) {
    return refuseForgot(c, context, { error, typed });
  }
  await sendLink(c, context, { mailer: context.mailer, typed });
  return c.redirect(`${FORGOT}?done=sent`, 303);
}

function refuseForgot(
  c: Context<HttpEnv>,
  context: SignInContext,
  { error, typed }: { readonly error: unknown; readonly typed: string },
): Response {
  const messages = readMessages(c);
  const refused = { ...toRefusedWait(messages, error), values: { who: typed } };
  return redirectRefused(context, c, { page: FORGOT, browser: context.issueFormToken(c), refused });
}

/** Sends the link. Without an account, stores a link for no account and a mail without a recipient, which the worker drops. */
async function sendLink(
  c: Context<HttpEnv>,
  context: SignInContext,
  { mailer, typed }: { readonly mailer: Mailer; readonly typed: string },
): Promise<void> {
  const [byLogin, byEmail] = await Promise.all([
    findUserByLogin(context.store, typed),
    findUserByVerifiedEmail(context.store, typed),
  ]);
  const user = [byLogin, byEmail].find((found) => found !== undefined && mayGetMail(found));
  const to = user?.email ? { ...user, email: user.email } : NO_PERSON;
  const link = createPasswordLink(context, to, { purpose: 'forgotten', mailedTo: to.email });
  const address = clientAddress(c);
  await context.store.writeAll([
    link.statement,
    mailLinkStatement(mailer, { link, to, purpose: 'forgotten', service: context.baseUrl }),
  ]);
  await context.refusals.record({ kind: 'password_forgotten', userId: user?.id, address });
}

const NO_PERSON = {
  id: '0'.repeat(24),
  credentialGeneration: 0,
  isAdmin: false,
  name: '-',
  login: '-',
  email: '',
  language: null,
};

/** A person without a password gets no link: for people who sign in only at a provider, the provider decides who may. */
function mayGetMail({ email, isEmailVerified, disabledAtMs, passwordChangedAtMs }: User): boolean {
  return email !== null && isEmailVerified && disabledAtMs === null && passwordChangedAtMs !== null;
}

async function showChoose(c: Context<HttpEnv>, context: SignInContext): Promise<Response> {
  const messages = readMessages(c);
  const token = c.req.query('token') ?? '';
  const link = await openPasswordLink(context, token);
  if (link === undefined) throw refuseLink(messages);
  const browser = context.issueFormToken(c);
  const refused = readRefused(context, c, browser);
  const page = renderChoosePage(messages, { csrfToken: browser, token, link, refused });
  return respondPage(c, page, { status: refused?.status, withScript: true });
}

async function choose(c: Context<HttpEnv>, context: SignInContext): Promise<Response> {
  const form = await readForm(c);
  context.checkSignedOutForm(c, form);
  const token = readField(form, 'token');
  const link = await openPasswordLink(context, token);
  // The page of the link shows that it no longer works.
  const page = `${CHOOSE}?${new URLSearchParams({ token }).toString()}`;
  if (link === undefined) return c.redirect(page, 303);
  const deletesTokens = form.has('delete_tokens');
  const audits = auditChoice(c, context, { link, deletesTokens });
  try {
    const chosen = { token, link, password: readField(form, 'password'), deletesTokens, ...audits };
    // Another password or address was set meanwhile, which ended the link.
    if (!(await choosePassword(context, chosen))) return c.redirect(page, 303);
  } catch (error) {
    const refused = toRefusedPassword(readMessages(c), error);
    return redirectRefused(context, c, { page, browser: context.issueFormToken(c), refused });
  }
  context.cookies.drop(c, 'session');
  const query = new URLSearchParams({ done: kindOfNewPassword(link.user), login_hint: link.user.login });
  return c.redirect(`/sign-in?${query.toString()}`, 303);
}

function auditChoice(
  c: Context<HttpEnv>,
  { world }: SignInContext,
  { link, deletesTokens }: { readonly link: OpenedLink; readonly deletesTokens: boolean },
): Pick<ChosenPassword, 'audit' | 'tokensAudit'> {
  const by = `link (${link.purpose})`;
  const event = { userId: link.user.id, address: clientAddress(c) };
  const details = { by, tokens_revoked: deletesTokens };
  const revoked = { ...event, kind: 'personal_token_revoked', details: { by, which: 'all' } } as const;
  return {
    audit: auditStatement({ ...event, kind: kindOfNewPassword(link.user), details }, world.nowMs()),
    tokensAudit: auditStatement(revoked, world.nowMs()),
  };
}

function refuseLink(messages: Messages): Failure {
  return new Failure('forbidden', messages.choose.worthless.replace(/\.$/, ''));
}
