/** Assembles the ways to sign in: password, passkey, upstream provider, and the set-up of the first account. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';
import { createPageRoutes } from '../../pages/page-routes.ts';
import { addRefusedPage } from '../../pages/refused-page.ts';
import type { FormFields } from './cookies.ts';
import { createFlow, type FlowOptions, formatFlow } from './flow.ts';
import { addPasskeyRoutes } from './passkey-routes.ts';
import { addPasswordRoutes } from './password-routes.ts';
import { addSecondStepRoutes } from './second-step-routes.ts';
import { addSetupRoutes } from './setup-routes.ts';
import {
  createSignInContext,
  type Session,
  type SignInContext,
  type SignInContextDependencies,
} from './sign-in-context.ts';
import { addUpstreamRoutes } from './upstream-routes.ts';

export type { Session } from './sign-in-context.ts';

export interface SignIn {
  /** Must be mounted at `/`. */
  readonly routes: OpenAPIHono<HttpEnv>;
  readonly context: SignInContext;
  currentSession(c: Context<HttpEnv>): Promise<Session | undefined>;
  /** Redirects (303) to the sign-in page, which returns to `returnTo` (a path of this service). */
  redirectToSignIn(c: Context<HttpEnv>, returnTo: string, options?: SignInOptions): Response;
  /** Throws `forbidden` unless the form came from a page of this session and of this site. */
  checkForm(c: Context<HttpEnv>, form: FormFields): void;
}

export interface SignInOptions extends FlowOptions {
  readonly loginHint?: string | undefined;
}

export function createSignIn(dependencies: SignInContextDependencies): SignIn {
  const context = createSignInContext(dependencies);
  const routes = createPageRoutes(context.respondRefusal);
  addRefusedPage(routes, context);
  addPasswordRoutes(routes, context, context.upstream?.config);
  addSecondStepRoutes(routes, context);
  addPasskeyRoutes(routes, context);
  addSetupRoutes(routes, context);
  if (context.upstream !== undefined) addUpstreamRoutes(routes, context, context.upstream);
  return {
    routes,
    context,
    currentSession: context.currentSession,
    checkForm: context.checkForm,
    redirectToSignIn(c, returnTo, options = {}) {
      const { loginHint, ...how } = options;
      const flow = createFlow(dependencies.cipher, returnTo, how);
      return c.redirect(`/sign-in${formatFlow(flow, { login_hint: loginHint })}`, 303);
    },
  };
}
