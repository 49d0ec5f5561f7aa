/**
 * Keeps the page of a refused form, encrypted, until the redirect shows it. A session has at most one such page, which the next
 * one replaces, so that repeated refusals do not fill the table.
 */

import type { KeptPage } from '../../pages/signed-in-pages.ts';
import { redeemAskedOneTimeToken, replaceOneTimeToken } from '../accounts/one-time-token-store.ts';
import type { SignInContext } from '../sign-in/sign-in-context.ts';

/** Short, since the browser follows the redirect at once. */
const LIFETIME_MS = 5 * 60_000;
const TOKEN_BYTES = 16;

interface Place {
  readonly sessionId: string;
  readonly path: string;
}

interface Kept {
  /** Identifies the page that the redirect leads to. */
  readonly token: string;
  readonly path: string;
  readonly page: KeptPage;
}

/** Returns the token that takes the page once, in this session and at this path. */
export async function keepPage(context: SignInContext, { sessionId, path }: Place, page: KeptPage): Promise<string> {
  const token = Buffer.from(context.world.randomBytes(TOKEN_BYTES)).toString('base64url');
  const content: Kept = { token, path, page };
  await replaceOneTimeToken(context, 'refused-page', { token: rowOf(sessionId), content, lifetimeMs: LIFETIME_MS });
  return token;
}

/** Returns undefined if the page was taken or replaced, or belongs to another session or path. */
export async function takePage(
  context: SignInContext,
  { sessionId, path }: Place,
  token: string,
): Promise<KeptPage | undefined> {
  const isAsked = (kept: Kept) => kept.token === token && kept.path === path;
  const taken = await redeemAskedOneTimeToken(context, 'refused-page', { token: rowOf(sessionId), isAsked });
  return taken?.page;
}

function rowOf(sessionId: string): string {
  return `refused page of ${sessionId}`;
}
