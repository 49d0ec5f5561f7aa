/** The answers of `/oauth/authorize` to the client, by way of the browser: RFC 6749 §4.1.2, with `iss` (RFC 9207). */

import type { Context } from 'hono';
import { isFailure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import { renderGoOnPage } from '../../pages/notice-pages.ts';
import { respondPage } from '../../pages/page-response.ts';
import { addToQuery, isPrivateScheme } from '../applications/redirect-uri.ts';
import { readMessages } from '../messages/messages.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import type { AuthorizationRequest } from './authorize-request.ts';

type Issuer = Pick<ProtocolDependencies, 'issuer'>;

export interface Refusal {
  readonly error: unknown;
  readonly redirectUri: string;
  readonly state: string | undefined;
}

export function redirectWithCode(
  { issuer }: Issuer,
  c: Context<HttpEnv>,
  answer: { readonly request: AuthorizationRequest; readonly code: string },
): Promise<Response> | Response {
  const { redirectUri, state } = answer.request;
  return redirectToClient(c, redirectUri, addToQuery(redirectUri, { code: answer.code, state, iss: issuer }));
}

export function redirectWithRefusal(
  issuer: Issuer,
  c: Context<HttpEnv>,
  refusal: Refusal,
): Promise<Response> | Response {
  return redirectToClient(c, refusal.redirectUri, formatRefusal(issuer, refusal));
}

/** The client's address with the refusal. Throws what the protocol does not let a client know: that is shown here. */
export function formatRefusal({ issuer }: Issuer, { error, redirectUri, state }: Refusal): string {
  if (!isFailure(error) || typeof error.details.oauthError !== 'string') throw error;
  const parameters = { error: error.details.oauthError, error_description: error.message, state };
  return addToQuery(redirectUri, { ...parameters, iss: issuer });
}

function redirectToClient(c: Context<HttpEnv>, redirectUri: string, url: string): Promise<Response> | Response {
  const messages = readMessages(c);
  if (isPrivateScheme(redirectUri))
    return respondPage(c, renderGoOnPage(messages, { url, target: redirectUri.split(':')[0] ?? '' }));
  c.header('Cache-Control', 'no-store');
  c.header('Referrer-Policy', 'no-referrer');
  c.header('X-Frame-Options', 'DENY');
  c.header('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'");
  // 303 after a form (RFC 9700 §4.12): the browser must not post the form on to the client.
  return c.redirect(url, c.req.method === 'POST' ? 303 : 302);
}
