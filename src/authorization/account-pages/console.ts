/** The account pages of a signed-in person, and the check for a recent sign-in. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { HttpEnv } from '../../http/context.ts';
import {
  createVisits,
  type Gate,
  type Submission as PageSubmission,
  type Visit as PageVisit,
  type Visits,
} from '../../pages/visits.ts';
import type { Session, SignInContext } from '../sign-in/sign-in-context.ts';
import { askToSignIn } from './gate.ts';

export type Visit = PageVisit<Session>;
export type Submission = PageSubmission<Session>;

export interface Console extends Visits<Session> {
  readonly context: SignInContext;
}

export function createConsole(routes: OpenAPIHono<HttpEnv>, context: SignInContext, gate: Gate<Session>): Console {
  return { context, ...createVisits(routes, gate) };
}

const FRESH_MS = 30 * 60_000;

/**
 * Adding a way to sign in requires a sign-in within the last half hour: an abandoned browser must not be
 * enough. Returns the redirect to the sign-in page, or undefined when the sign-in is recent.
 */
export function askToSignInAgain(
  { c, session }: Visit,
  context: SignInContext,
  returnTo: string,
): Response | undefined {
  if (isFresh(session, context)) return undefined;
  return askToSignIn(c, context.vault, { returnTo, loginHint: session.user.login });
}

export function isFresh(session: Session, { world }: SignInContext): boolean {
  return Math.abs(world.nowMs() - session.authTimeMs) < FRESH_MS;
}
