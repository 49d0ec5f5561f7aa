/** Decides whether a sign-in is recent enough (30 minutes) for changes of ways to sign in, and asks to sign in again. */
import type { Session, SignInContext } from '../sign-in/sign-in-context.ts';
import type { PageRequest } from './account-pages.ts';
import { askToSignIn } from './session-guard.ts';

const FRESH_MS = 30 * 60_000;

/**
 * Returns the redirect to the sign-in page, or undefined if the sign-in is recent. Adding a way to sign in, turning on the
 * second step and an administrator's changes of an account need a recent sign-in: an abandoned browser must not be enough. So do
 * turning off the second step and new recovery codes if the person has no password to enter as proof.
 */
export function askToSignInAgain(
  { c, session }: PageRequest,
  context: SignInContext,
  returnTo: string,
): Response | undefined {
  if (isFresh(session, context)) return undefined;
  return askToSignIn(c, context.cipher, { returnTo, loginHint: session.user.login, again: 'yes' });
}

export function isFresh(session: Session, { world }: SignInContext): boolean {
  return Math.abs(world.nowMs() - session.authTimeMs) < FRESH_MS;
}
