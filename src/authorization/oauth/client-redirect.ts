/** Redirects the browser to the client with a code or an error, and with `iss` (RFC 6749 §4.1.2, RFC 9207). */

import type { Context } from 'hono';
import { isFailure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import { renderErrorPage, renderGoOnPage } from '../../pages/notice-pages.ts';
import { respondPage } from '../../pages/page-response.ts';
import {
  findOneTimeToken,
  issueOneTimeToken,
  type OneTimeTokenDependencies,
  redeemOneTimeToken,
} from '../accounts/one-time-token-store.ts';
import { addToQuery, isPrivateScheme } from '../applications/redirect-uri.ts';
import { readMessages } from '../messages/messages.ts';
import { spendMark } from '../sign-in/prompt-login-mark.ts';
import type { SignIn } from '../sign-in/sign-in.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { AUTHORIZE_PATH, type AuthorizationRequest, MARK_PARAMETER } from './authorize-request.ts';

type Issuer = Pick<ProtocolDependencies, 'issuer'>;

export interface RedirectDependencies extends Issuer, OneTimeTokenDependencies {
  readonly signIn: Pick<SignIn, 'currentSession' | 'context'>;
}

/** The page after a form whose target a redirect cannot reach, such as a private scheme. */
export const CONTINUE_PATH = '/continue';
const LIFETIME_MS = 60_000;

/** An answer that its page has not shown yet. It is shown once, since a code that the client redeems twice revokes its tokens. */
interface WaitingAnswer {
  readonly sessionId: string;
  readonly url: string;
}

export interface Refusal {
  readonly error: unknown;
  readonly redirectUri: string;
  readonly state: string | undefined;
}

export function redirectWithCode(
  dependencies: RedirectDependencies,
  c: Context<HttpEnv>,
  answer: { readonly request: AuthorizationRequest; readonly code: string },
): Promise<Response> | Response {
  const { redirectUri, state } = answer.request;
  const url = addToQuery(redirectUri, { code: answer.code, state, iss: dependencies.issuer });
  return redirectToClient(dependencies, c, url);
}

export function redirectWithRefusal(
  dependencies: RedirectDependencies,
  c: Context<HttpEnv>,
  refusal: Refusal,
): Promise<Response> | Response {
  return redirectToClient(dependencies, c, formatRefusal(dependencies, refusal));
}

/** Returns the redirect URI with the refusal. Throws errors that the client must not learn: a page here shows them. */
export function formatRefusal({ issuer }: Issuer, { error, redirectUri, state }: Refusal): string {
  if (!isFailure(error) || typeof error.details.oauthError !== 'string') throw error;
  const parameters = { error: error.details.oauthError, error_description: error.message, state };
  return addToQuery(redirectUri, { ...parameters, iss: issuer });
}

function redirectToClient(
  dependencies: RedirectDependencies,
  c: Context<HttpEnv>,
  url: string,
): Promise<Response> | Response {
  const isForm = c.req.method === 'POST';
  // The consent form does not have the mark, so every form spends it. A GET request without the mark leaves it for the marked one.
  if (isForm || c.req.query(MARK_PARAMETER) !== undefined) spendMark(dependencies.signIn.context, c);
  if (isPrivateScheme(url)) return isForm ? redirectToLink(dependencies, c, url) : showLink(c, url);
  c.header('Cache-Control', 'no-store');
  c.header('Referrer-Policy', 'no-referrer');
  c.header('X-Frame-Options', 'DENY');
  c.header('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'");
  // 303 after a form (RFC 9700 §4.12): the browser must not post the form on to the client.
  return c.redirect(url, isForm ? 303 : 302);
}

function showLink(c: Context<HttpEnv>, url: string): Promise<Response> {
  return respondPage(c, renderGoOnPage(readMessages(c), { url, target: url.split(':')[0] ?? '' }));
}

async function redirectToLink(dependencies: RedirectDependencies, c: Context<HttpEnv>, url: string): Promise<Response> {
  const session = await dependencies.signIn.currentSession(c);
  const content: WaitingAnswer = { sessionId: session?.id ?? '', url };
  const token = await issueOneTimeToken(dependencies, 'to-client', { content, lifetimeMs: LIFETIME_MS });
  return c.redirect(`${AUTHORIZE_PATH}${CONTINUE_PATH}?${new URLSearchParams({ answer: token }).toString()}`, 303);
}

/** Shows the answer after a form, once. */
export async function showWaitingAnswer(dependencies: RedirectDependencies, c: Context<HttpEnv>): Promise<Response> {
  const token = c.req.query('answer') ?? '';
  const session = await dependencies.signIn.currentSession(c);
  const waiting = await findOneTimeToken<WaitingAnswer>(dependencies, 'to-client', token);
  const isOwn = session !== undefined && session.id === waiting?.sessionId;
  const taken = isOwn ? await redeemOneTimeToken<WaitingAnswer>(dependencies, 'to-client', token) : undefined;
  if (taken !== undefined) return showLink(c, taken.url);
  const messages = readMessages(c);
  const { title, lead } = messages.consent.answered;
  return respondPage(c, renderErrorPage(messages, { title, message: lead }), { status: 410 });
}
