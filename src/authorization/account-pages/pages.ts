/** Collects every page for signed-in people, and the assets that pages load. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { HttpEnv } from '../../http/context.ts';
import { addAssetRoutes, icon, pageScript, styleSheet } from '../../pages/assets.ts';
import { addLanguageRoute } from '../../pages/language-routes.ts';
import { createPageRoutes } from '../../pages/page-routes.ts';
import type { SessionGuard } from '../../pages/signed-in-pages.ts';
import { passkeyScript } from '../sign-in/passkey-script.ts';
import type { Session, SignInContext } from '../sign-in/sign-in-context.ts';
import { type AccountPages, createAccountPages } from './account-pages.ts';
import { addActivityRoutes } from './activity-routes.ts';
import { addApplicationRoutes } from './application-routes.ts';
import { setLanguageStatement } from './language-store.ts';
import { addProfileRoutes } from './profile-routes.ts';
import { addSecurityRoutes } from './security-routes.ts';
import { addSessionRoutes } from './session-routes.ts';
import { addTokenRoutes } from './token-routes.ts';
import { addTotpRoutes } from './totp-routes.ts';
import { addUpstreamLinkRoutes } from './upstream-link-routes.ts';

/** Creates the pages, to be mounted at `/` beside the sign-in. `more`: adds the pages of modules that build on this one. */
export function createPages(
  context: SignInContext,
  guard: SessionGuard<Session>,
  more: readonly ((pages: AccountPages) => void)[],
): OpenAPIHono<HttpEnv> {
  const routes = createPageRoutes(context.respondRefusal);
  const pages = createAccountPages(routes, context, guard);
  addAssetRoutes(routes, [styleSheet, icon, pageScript, passkeyScript]);
  addLanguageRoute(routes, {
    baseUrl: context.baseUrl,
    storeChoice: async (c, language) => {
      const session = await context.currentSession(c);
      if (session !== undefined) await context.store.writeAll([setLanguageStatement(session.user.id, language)]);
    },
  });
  addProfileRoutes(pages);
  addSecurityRoutes(pages);
  addTotpRoutes(pages);
  if (context.upstream !== undefined) addUpstreamLinkRoutes(pages, context.upstream);
  addSessionRoutes(pages);
  addTokenRoutes(pages);
  addApplicationRoutes(pages);
  addActivityRoutes(pages);
  for (const add of more) add(pages);
  return routes;
}
