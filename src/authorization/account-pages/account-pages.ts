/** Creates what the routes of account pages share: the signed-in person, forms, responses. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { HttpEnv } from '../../http/context.ts';
import {
  type PageRequest as AnyPageRequest,
  createSignedInPages,
  type Submission as PageSubmission,
  type SessionGuard,
  type SignedInPages,
} from '../../pages/signed-in-pages.ts';
import type { Session, SignInContext } from '../sign-in/sign-in-context.ts';

export type PageRequest = AnyPageRequest<Session>;
export type Submission = PageSubmission<Session>;

export interface AccountPages extends SignedInPages<Session> {
  readonly context: SignInContext;
}

export function createAccountPages(
  routes: OpenAPIHono<HttpEnv>,
  context: SignInContext,
  guard: SessionGuard<Session>,
): AccountPages {
  return { context, ...createSignedInPages(routes, guard) };
}
