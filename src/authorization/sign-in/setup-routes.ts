/** Serves the first start: the one-time link with which the operator creates the first administrator. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import { respondPage } from '../../pages/page-response.ts';
import { readField, readForm } from '../../pages/page-routes.ts';
import { readRefused, redirectRefused } from '../../pages/refused-form.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { findOneTimeToken, issueOneTimeToken, redeemOneTimeToken } from '../accounts/one-time-token-store.ts';
import { createFirstAdministrator, hasAdministrators } from '../accounts/user-store.ts';
import { readMessages } from '../messages/messages.ts';
import { checkNewPassword, hashPassword } from './password.ts';
import { clientAddress } from './read-client-address.ts';
import { type SignInContext, toRefusedPassword } from './sign-in-context.ts';
import { renderSetupPage } from './sign-in-page.ts';

const PATH = '/setup';
const LIFETIME_MS = 24 * 3_600_000;

/**
 * Creates the link that sets up a service without an administrator; undefined if there is one. Other accounts do not count: the
 * first visitor of an open sign-up must not lock out the operator.
 */
export async function createSetupLink(
  context: Pick<SignInContext, 'store' | 'world' | 'cipher' | 'baseUrl'>,
): Promise<string | undefined> {
  if (await hasAdministrators(context.store)) return undefined;
  const token = await issueOneTimeToken(context, 'setup', { content: {}, lifetimeMs: LIFETIME_MS });
  // In the query, which is never logged; a path would be.
  return `${context.baseUrl}${PATH}?token=${token}`;
}

export function addSetupRoutes(routes: OpenAPIHono<HttpEnv>, context: SignInContext): void {
  routes.get(PATH, (c) => showSetup(c, context));
  routes.post(PATH, (c) => submitSetup(c, context));
}

async function showSetup(c: Context<HttpEnv>, context: SignInContext): Promise<Response> {
  const messages = readMessages(c);
  const token = c.req.query('token') ?? '';
  if (!(await isLiveToken(context, token))) throw new Failure('forbidden', messages.setup.worthless);
  const csrfToken = context.issueFormToken(c);
  const refused = readRefused(context, c, csrfToken);
  const { login = '', name = '', email = '' } = refused?.values ?? {};
  const page = renderSetupPage(messages, { csrfToken, token, login, name, email, mistake: refused });
  return respondPage(c, page, { status: refused?.status, withScript: true });
}

async function submitSetup(c: Context<HttpEnv>, context: SignInContext): Promise<Response> {
  const messages = readMessages(c);
  const form = await readForm(c);
  context.checkSignedOutForm(c, form);
  const token = readField(form, 'token');
  const page = `${PATH}?${new URLSearchParams({ token }).toString()}`;
  // The page of the link shows that it no longer works.
  if (!(await isLiveToken(context, token))) return c.redirect(page, 303);
  const values = {
    login: readField(form, 'login').trim(),
    name: readField(form, 'name').trim(),
    email: readField(form, 'email').trim(),
  };
  try {
    return await setUp(c, context, { ...values, token, password: readField(form, 'password') });
  } catch (error) {
    const refused = { ...toRefusedPassword(messages, error), values };
    return redirectRefused(context, c, { page, browser: context.issueFormToken(c), refused });
  }
}

async function isLiveToken(context: SignInContext, token: string): Promise<boolean> {
  return (await findOneTimeToken(context, 'setup', token)) !== undefined && !(await hasAdministrators(context.store));
}

async function setUp(
  c: Context<HttpEnv>,
  context: SignInContext,
  given: { login: string; name: string; email: string; token: string; password: string },
): Promise<Response> {
  const { login, name, email, token, password } = given;
  checkNewPassword(password, { login });
  const passwordHash = await hashPassword(password, { key: 'set-up', isKnown: true });
  const { store, world } = context;
  const event = { kind: 'user_created', address: clientAddress(c), details: { by: 'set-up link' } } as const;
  const person = { login, name, email: email || null, isEmailVerified: email !== '', passwordHash };
  const user = await createFirstAdministrator(store, world, person, (userId) => [
    auditStatement({ ...event, userId }, world.nowMs()),
  ]);
  await redeemOneTimeToken(context, 'setup', token);
  return context.finishSignIn(c, { user, method: 'setup', flow: { returnTo: '/' } });
}
