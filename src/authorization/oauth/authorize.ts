/**
 * Serves `/oauth/authorize`: checks the request, asks for consent to what is new, and redirects back to the client. The consent
 * form carries the request, encrypted and bound to the session, so that no one can change it between the page and the decision.
 * Client and redirect URI are still checked again then.
 */

import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';
import type { RouteMount } from '../../http/mount.ts';
import { findPathBack } from '../../pages/form-origin.ts';
import { renderLeavePage } from '../../pages/notice-pages.ts';
import { respondPage } from '../../pages/page-response.ts';
import { createPageRoutes, readForm, refuseHead } from '../../pages/page-routes.ts';
import { findUserById } from '../accounts/user-store.ts';
import { type Application, findApplication } from '../applications/application-store.ts';
import { isLoopbackIp, isPrivateScheme } from '../applications/redirect-uri.ts';
import { isWithin, listGrantable, type Scope } from '../applications/scope.ts';
import { readMessages } from '../messages/messages.ts';
import { type Again, type Flow, refusePerson } from '../sign-in/flow.ts';
import { hasSignedInSince, markRequest } from '../sign-in/prompt-login-mark.ts';
import type { Session, SignIn } from '../sign-in/sign-in.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import {
  AUTHORIZE_PATH,
  type AuthorizationRequest,
  type AuthorizeQuery,
  checkRedirectUri,
  checkRequestSize,
  formatRequestPath,
  MARK_PARAMETER,
  type Prompt,
  parseAuthorizationRequest,
  parseAuthorizeQuery,
  readClientId,
  readRedirectUri,
  requireApplication,
} from './authorize-request.ts';
import { CONTINUE_PATH, formatRefusal, redirectWithRefusal, showWaitingAnswer } from './client-redirect.ts';
import { allow, answerWithoutAsking, deny } from './consent-answer.ts';
import { renderConsentPage } from './consent-page.ts';
import { createConsentView, describeTarget, readChosenScopes } from './consent-view.ts';
import { decryptRequest, encryptRequest } from './encrypted-request.ts';
import { type Consent, findConsent } from './protocol/consent-store.ts';
import { type HintedPerson, readIdTokenHint } from './protocol/id-token.ts';
import { createOAuthFailure } from './protocol/oauth-error.ts';
import { describeAuthorize } from './protocol-descriptions.ts';

export interface AuthorizeDependencies extends ProtocolDependencies {
  readonly signIn: SignIn;
}

const REQUEST_KIND = 'authorize';

export function createAuthorizeMount(dependencies: AuthorizeDependencies): RouteMount {
  const { respondRefusal } = dependencies.signIn.context;
  const routes = createPageRoutes(respondRefusal);
  describeAuthorize(routes);
  routes.get('/', refuseHead, (c) => beginAuthorization(dependencies, c));
  routes.post('/', (c) => postAuthorization(dependencies, c));
  routes.get(CONTINUE_PATH, refuseHead, (c) => showWaitingAnswer(dependencies, c));
  return { path: AUTHORIZE_PATH, errors: 'page', routes, respondPage: respondRefusal };
}

async function beginAuthorization(dependencies: AuthorizeDependencies, c: Context<HttpEnv>): Promise<Response> {
  const query = parseAuthorizeQuery(new URL(c.req.url).searchParams);
  const application = requireApplication(await findApplication(dependencies.store, readClientId(query)));
  const redirectUri = readRedirectUri(query, application);
  try {
    checkRequestSize(query);
    const request = parseAuthorizationRequest(query, application, redirectUri);
    return await answerRequest(dependencies, c, { request, application, query });
  } catch (error) {
    return refuseRequest(dependencies, c, { error, redirectUri, application, query });
  }
}

interface RefusedRequest {
  readonly error: unknown;
  readonly redirectUri: string;
  readonly application: Application;
  readonly query: AuthorizeQuery;
}

/**
 * Redirects a refusal to the client, but only after the person has signed in: any person can register a client, and a link to a
 * refused request would take strangers to its address (RFC 9700 §4.11.2). A request that must not show the sign-in page
 * (`prompt=none`) is redirected at once only for applications of the service or of an administrator.
 */
async function refuseRequest(
  dependencies: AuthorizeDependencies,
  c: Context<HttpEnv>,
  refused: RefusedRequest,
): Promise<Response> {
  const messages = readMessages(c);
  const { error, redirectUri, application, query } = refused;
  const refusal = { error, redirectUri, state: readState(query) };
  const url = formatRefusal(dependencies, refusal);
  if ((await dependencies.signIn.currentSession(c)) !== undefined) return redirectWithRefusal(dependencies, c, refusal);
  if (!hasPromptNone(query)) {
    // A request that is too long for the URL of the sign-in page is refused here, with a page.
    checkRequestSize(query);
    return redirectToSignIn(dependencies, c, { redirectUri, query, session: undefined, again: undefined });
  }
  if (await isRegisteredByAdministrator(dependencies, application))
    return redirectWithRefusal(dependencies, c, refusal);
  const page = renderLeavePage(messages, { url, target: describeTarget(redirectUri), application: application.name });
  return respondPage(c, page, { status: 400 });
}

function hasPromptNone({ values }: AuthorizeQuery): boolean {
  return values.get('prompt')?.split(' ').includes('none') ?? false;
}

/**
 * Whether the application belongs to the service, or an administrator registered it. An application registered before its owner
 * became administrator counts as an ordinary person's: anyone who could sign in to that account may have registered it.
 */
async function isRegisteredByAdministrator(
  { store }: AuthorizeDependencies,
  application: Application,
): Promise<boolean> {
  const { ownerId, createdAtMs } = application;
  if (ownerId === undefined) return true;
  const owner = await findUserById(store, ownerId);
  return owner?.isAdmin === true && createdAtMs > (owner.administratorSinceMs ?? 0);
}

/** Returns undefined for a repeated state: it is unknown which one is the client's. */
function readState({ values, repeated }: AuthorizeQuery): string | undefined {
  return repeated.has('state') ? undefined : values.get('state');
}

interface CheckedRequest {
  readonly request: AuthorizationRequest;
  readonly application: Application;
  readonly query: AuthorizeQuery;
}

async function answerRequest(
  dependencies: AuthorizeDependencies,
  c: Context<HttpEnv>,
  checked: CheckedRequest,
): Promise<Response> {
  const { application } = checked;
  const session = await dependencies.signIn.currentSession(c);
  const messages = readMessages(c);
  const hinted = await findHintedPerson(dependencies, checked);
  const isOther = hinted !== undefined && hinted.userId !== session?.user.id;
  if (session === undefined)
    return sendToSignIn(dependencies, c, {
      ...checked,
      session,
      again: asksToSignIn(checked.request) ? 'yes' : undefined,
    });
  if (mustSignInAgain(dependencies, c, { ...checked, session, isOther }))
    return sendToSignIn(dependencies, c, { ...checked, session, again: explainAgain(session, hinted) });
  if (isOther && hinted.userId !== undefined)
    throw createOAuthFailure('login_required', 'The user is not the one of id_token_hint');
  const request = { ...checked.request, scopes: listGrantableOrRefuse(checked.request, session) };
  const consent = await findConsent(dependencies.store, session.user.id, application.clientId);
  if (consent !== undefined && needsNoConsent({ request, application }, consent))
    return answerWithoutAsking(dependencies, c, { request, session, consent });
  if (request.prompts.includes('none')) throw createOAuthFailure('consent_required', 'The user has to be asked');
  const view = await createConsentView(dependencies, {
    application,
    session,
    scopes: request.scopes,
    canDeselectScopes: true,
    consented: consent?.scopes ?? [],
    redirectUri: request.redirectUri,
    request: encryptRequest(dependencies, session, { kind: REQUEST_KIND, content: request }),
    action: AUTHORIZE_PATH,
    // With a hint, every other account would be refused.
    switchAccountUrl: hinted?.userId === undefined ? formatSwitchPath(checked.query, request.prompts) : undefined,
  });
  return respondPage(c, renderConsentPage(messages, view), { leadsToClient: !isPrivateScheme(request.redirectUri) });
}

/** Formats the same request for another account; other values of `prompt` stay. */
function formatSwitchPath(query: AuthorizeQuery, prompts: readonly Prompt[]): string {
  const prompt = [...new Set([...prompts, 'select_account'])].join(' ');
  return formatRequestPath(query, { prompt });
}

/** Finds the person whom the client expects; undefined without a hint. */
async function findHintedPerson(
  dependencies: AuthorizeDependencies,
  { query, application: { clientId } }: CheckedRequest,
): Promise<HintedPerson | undefined> {
  const hint = query.values.get('id_token_hint');
  return hint === undefined ? undefined : await readIdTokenHint(dependencies, { hint, clientId });
}

/** Leaves out scopes that this person cannot grant. Throws `invalid_scope` if none is left. */
function listGrantableOrRefuse({ scopes }: AuthorizationRequest, { user }: Session): readonly Scope[] {
  const grantable = listGrantable(scopes, user);
  if (grantable.length === 0)
    throw createOAuthFailure('invalid_scope', 'The user may not grant any of the requested scopes');
  return grantable;
}

function mustSignInAgain(
  dependencies: AuthorizeDependencies,
  c: Context<HttpEnv>,
  { request, query, session, isOther }: CheckedRequest & { readonly session: Session; readonly isOther: boolean },
): boolean {
  const marked = { request: formatRequestPath(query, {}), mark: query.values.get(MARK_PARAMETER), session };
  if (hasSignedInSince(dependencies.signIn.context, c, marked)) return false;
  if (isOther || asksToSignIn(request)) return true;
  // An auth_time in the future (the clock was wrong) counts as equally far in the past.
  const ageMs = Math.abs(dependencies.world.nowMs() - session.authTimeMs);
  return request.maxAgeSeconds !== undefined && ageMs > request.maxAgeSeconds * 1000;
}

/** Whether the request needs a new sign-in, however recent the last one is. */
function asksToSignIn({ prompts }: AuthorizationRequest): boolean {
  return prompts.includes('login') || prompts.includes('select_account');
}

/** Returns why the sign-in page asks to sign in again: with a hint, only its person is accepted. */
function explainAgain({ user }: Session, hinted: HintedPerson | undefined): Again {
  if (hinted?.userId === undefined) return 'yes';
  return hinted.userId === user.id ? 'same' : refusePerson(user.id);
}

interface RefusedSession extends Pick<Flow, 'again'> {
  readonly session: Session | undefined;
}

function sendToSignIn(
  dependencies: AuthorizeDependencies,
  c: Context<HttpEnv>,
  { request, query, ...refused }: CheckedRequest & RefusedSession,
): Response {
  if (request.prompts.includes('none')) throw createOAuthFailure('login_required', 'The user has to sign in');
  return redirectToSignIn(dependencies, c, { redirectUri: request.redirectUri, query, ...refused });
}

function redirectToSignIn(
  dependencies: AuthorizeDependencies,
  c: Context<HttpEnv>,
  { redirectUri, query, session, again }: Pick<RefusedRequest, 'redirectUri' | 'query'> & RefusedSession,
): Response {
  // Every request, not only one with prompt=login: max_age and select_account need the mark too.
  const marked = { request: formatRequestPath(query, {}), sessionId: session?.id };
  const mark = markRequest(dependencies.signIn.context, c, marked);
  return dependencies.signIn.redirectToSignIn(c, formatRequestPath(query, { [MARK_PARAMETER]: mark }), {
    loginHint: query.values.get('login_hint')?.slice(0, MAX_LOGIN_HINT_LENGTH),
    leadsToClient: !isPrivateScheme(redirectUri),
    again,
  });
}

/** The sign-in page shows no more of the hint. */
const MAX_LOGIN_HINT_LENGTH = 64;

/**
 * Whether consent can be skipped: everything was allowed before, and the client is confidential or on a loopback IP. Other
 * public clients cannot prove their identity, so the person is asked each time (RFC 6749 §10.2, RFC 8252 §8.6).
 */
function needsNoConsent(
  { request, application }: Pick<CheckedRequest, 'request' | 'application'>,
  consent: Consent,
): boolean {
  if (request.prompts.includes('consent') || !isWithin(request.scopes, consent.scopes)) return false;
  return !application.isPublic || isLoopbackIp(request.redirectUri);
}

async function postAuthorization(dependencies: AuthorizeDependencies, c: Context<HttpEnv>): Promise<Response> {
  const form = await readForm(c);
  const ciphertext = form.get('request');
  // An authorization request may be a POST (RFC 6749 §3.1); it is redirected to the same request as a GET.
  if (ciphertext === null || !form.has('decision')) {
    const query = parseAuthorizeQuery(form);
    checkRequestSize(query);
    return c.redirect(formatRequestPath(query), 303);
  }
  dependencies.signIn.checkForm(c, form);
  const session = await dependencies.signIn.currentSession(c);
  // Opens the request again, which asks to sign in and then for the decision.
  if (session === undefined) return c.redirect(findPathBack(c), 303);
  const request = decryptRequest<AuthorizationRequest>(dependencies, session, { kind: REQUEST_KIND, ciphertext });
  const application = requireApplication(await findApplication(dependencies.store, request.clientId));
  checkRedirectUri(request.redirectUri, application);
  const allowedScopes = readChosenScopes(form, request.scopes);
  // Allow with every box cleared allows nothing.
  const isAllowed = form.get('decision') === 'allow' && allowedScopes.length > 0;
  if (!isAllowed) return deny(dependencies, c, { request, session });
  return allow(dependencies, c, { request, session, allowedScopes });
}
