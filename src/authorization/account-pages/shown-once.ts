/**
 * Carries a new secret over a redirect to the page that shows it once. Meanwhile the secret is encrypted in the table of one-time
 * tokens, for one session and one page. A reload of that page makes no second secret.
 */

import type { BoundStatement } from '../../database/store.ts';
import type { PageRequest } from '../../pages/signed-in-pages.ts';
import { createOneTimeToken, findOneTimeToken, redeemOneTimeToken } from '../accounts/one-time-token-store.ts';
import type { Session, SignInContext } from '../sign-in/sign-in-context.ts';

/** Short, since the browser follows the redirect at once. */
const LIFETIME_MS = 5 * 60_000;

interface Waiting {
  readonly sessionId: string;
  readonly path: string;
  readonly texts: readonly string[];
}

export interface ShownOnce {
  /** The secrets that the redirect carried; empty without a redirect. */
  readonly texts: readonly string[];
  /** The secrets were shown before: the page was reloaded. */
  readonly isSpent: boolean;
}

/** Returns undefined if the token was taken already, or belongs to another session or page. */
async function takeKept(
  context: SignInContext,
  { sessionId, path }: Pick<Waiting, 'sessionId' | 'path'>,
  token: string,
): Promise<readonly string[] | undefined> {
  const waiting = await findOneTimeToken<Waiting>(context, 'shown-once', token);
  if (waiting?.sessionId !== sessionId || waiting.path !== path) return undefined;
  return (await redeemOneTimeToken<Waiting>(context, 'shown-once', token))?.texts;
}

type Shown = Pick<Waiting, 'path' | 'texts'> & { readonly done?: string };

export interface PreparedSecret {
  /** Must commit with the secret itself, so that no crash leaves a secret that can never be shown. */
  readonly statement: BoundStatement;
  /** 303 to the page at `path`, which takes the texts with `takeOnce`. */
  readonly redirect: () => Response;
}

export function prepareSecret(
  context: SignInContext,
  { c, session }: PageRequest<Session>,
  { path, texts, done }: Shown,
): PreparedSecret {
  const content: Waiting = { sessionId: session.id, path, texts };
  const { token, statement } = createOneTimeToken(context, 'shown-once', { content, lifetimeMs: LIFETIME_MS });
  const query = new URLSearchParams({ ...(done === undefined ? {} : { done }), once: token });
  return { statement, redirect: () => c.redirect(`${path}?${query.toString()}`, 303) };
}

/** For a secret that is stored already: if its page is never shown, the person deletes the secret and makes another. */
export async function redirectWithSecret(
  context: SignInContext,
  request: PageRequest<Session>,
  shown: Shown,
): Promise<Response> {
  const { statement, redirect } = prepareSecret(context, request, shown);
  await context.store.writeAll([statement]);
  return redirect();
}

export async function takeOnce(context: SignInContext, { c, session }: PageRequest<Session>): Promise<ShownOnce> {
  const token = c.req.query('once');
  if (token === undefined) return { texts: [], isSpent: false };
  const texts = await takeKept(context, { sessionId: session.id, path: c.req.path }, token);
  return { texts: texts ?? [], isSpent: texts === undefined };
}
