/** Serves the pages that link an account to an upstream provider, and remove the link. */
import { renderGoOnPage } from '../../pages/notice-pages.ts';
import { respondPage } from '../../pages/page-response.ts';
import { unlinkUpstreamStatement } from '../accounts/upstream-account-store.ts';
import { readMessages } from '../messages/messages.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import type { UpstreamProvider } from '../sign-in/upstream.ts';
import { beginUpstream } from '../sign-in/upstream-routes.ts';
import type { AccountPages, PageRequest, Submission } from './account-pages.ts';
import { askToSignInAgain } from './recent-sign-in.ts';
import { removeWayIn, SECURITY } from './security-routes.ts';
import { redirectWithSecret, takeOnce } from './shown-once.ts';

const LINK = `${SECURITY}/upstream/link`;

export function addUpstreamLinkRoutes({ context, form, page }: AccountPages, provider: UpstreamProvider): void {
  form(LINK, (submission) => beginLink(context, submission, provider));
  page(LINK, (request) => showLink(context, request, provider));
  form(`${SECURITY}/upstream/unlink`, (submission) => unlink(context, submission, provider));
}

async function beginLink(
  context: AccountPages['context'],
  submission: Submission,
  provider: UpstreamProvider,
): Promise<Response> {
  const { c, session } = submission;
  const again = askToSignInAgain(submission, context, SECURITY);
  if (again !== undefined) return again;
  const attempt = { provider, returnTo: SECURITY, isFresh: false, linkUserId: session.user.id };
  const url = await beginUpstream(c, context, attempt);
  // Not a redirect to the provider: `form-action` would block its further redirects.
  return redirectWithSecret(context, submission, { path: LINK, texts: [url.href] });
}

async function showLink(
  context: AccountPages['context'],
  request: PageRequest,
  provider: UpstreamProvider,
): Promise<Response> {
  const [url] = (await takeOnce(context, request)).texts;
  if (url === undefined) return request.c.redirect(SECURITY, 303);
  return respondPage(request.c, renderGoOnPage(readMessages(request.c), { url, target: provider.config.name }));
}

async function unlink(
  context: AccountPages['context'],
  submission: Submission,
  provider: UpstreamProvider,
): Promise<Response> {
  const { id: userId } = submission.session.user;
  const { issuer } = provider.config;
  const event = {
    kind: 'upstream_unlinked',
    userId,
    address: clientAddress(submission.c),
    details: { issuer },
  } as const;
  return removeWayIn(context, submission, { form: 'upstream', remove: unlinkUpstreamStatement(userId, issuer), event });
}
