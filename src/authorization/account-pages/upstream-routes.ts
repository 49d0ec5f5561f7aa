import { renderGoOnPage } from '../../pages/notice-pages.ts';
import { respondPage } from '../../pages/page-response.ts';
import { auditStep } from '../accounts/audit-store.ts';
import { unlinkUpstreamStep } from '../accounts/upstream-account-store.ts';
import { texts } from '../messages/messages.ts';
import { clientAddress } from '../sign-in/client-address.ts';
import type { UpstreamProvider } from '../sign-in/upstream.ts';
import { beginUpstream } from '../sign-in/upstream-routes.ts';
import { askToSignInAgain, type Console } from './console.ts';
import { isLastWayIn, SECURITY, showSecurity } from './security-routes.ts';

/** Links a person's account at the upstream provider, and unlinks it. */
export function addUpstreamLinkRoutes({ kit, form }: Console, provider: UpstreamProvider): void {
  form(`${SECURITY}/upstream/link`, async (submission) => {
    const { c, session } = submission;
    const again = askToSignInAgain(submission, kit, SECURITY);
    if (again !== undefined) return again;
    const url = await beginUpstream(c, kit, { provider, returnTo: SECURITY, linkUserId: session.user.id });
    // Not a redirect: `form-action` would stop it at a provider that redirects on.
    return respondPage(c, renderGoOnPage({ url: url.href, target: provider.config.name }));
  });

  form(`${SECURITY}/upstream/unlink`, async (submission) => {
    const { c, session } = submission;
    if (await isLastWayIn(kit, submission)) {
      const mistake = { message: texts.security.lastWayIn, form: 'upstream' } as const;
      return showSecurity(kit, submission, { mistake });
    }
    const { issuer } = provider.config;
    const event = { kind: 'upstream_unlinked', userId: session.user.id, address: clientAddress(c) } as const;
    await kit.store.writeAll([
      unlinkUpstreamStep(session.user.id, issuer),
      auditStep({ ...event, details: { issuer } }, kit.world.nowMs()),
    ]);
    return c.redirect(`${SECURITY}?done=saved`, 303);
  });
}
