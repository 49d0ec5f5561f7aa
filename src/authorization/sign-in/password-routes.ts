/** Serves the sign-in form with login and password, asks for the second step, and signs out. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { networkOf } from '../../http/client-address.ts';
import type { HttpEnv } from '../../http/context.ts';
import { respondPage } from '../../pages/page-response.ts';
import { readField, readForm } from '../../pages/page-routes.ts';
import { type RefusedForm, readRefused, redirectRefused } from '../../pages/refused-form.ts';
import { checkAttempt, forgiveAttempt, takeBackAttempt } from '../accounts/attempt-store.ts';
import { rehashPassword } from '../accounts/password-store.ts';
import { endSession } from '../accounts/session-store.ts';
import { type AttemptSubject, attemptSubjects } from '../accounts/sign-in-throttle.ts';
import { hasTotp } from '../accounts/totp-store.ts';
import { findCredentials, hasAdministrators, hasUsers, type User } from '../accounts/user-store.ts';
import { findApplication } from '../applications/application-store.ts';
import { type Messages, readMessages } from '../messages/messages.ts';
import { explainRefusal, type Flow, findAskingClientId, formatFlow, readFlow, SESSION_ENDED } from './flow.ts';
import { findDeviceId } from './known-device.ts';
import { canUsePasskeys } from './passkeys.ts';
import { checkHashPlace, hashPassword, isPassword, needsRehash } from './password.ts';
import { type HashCaller, isBusy } from './password-hash-queue.ts';
import { clientAddress } from './read-client-address.ts';
import { askSecondStep } from './second-step-routes.ts';
import { type SignInContext, toRefusedWait } from './sign-in-context.ts';
import { renderSignInPage, type SignInView } from './sign-in-page.ts';

export interface UpstreamLink {
  readonly name: string;
}

/** The messages that other pages have this one show, by the value of `done`. */
function listDone({ signIn }: Messages): ReadonlyMap<string, string> {
  return new Map([
    ['signed_out', signIn.ended],
    ['password_changed', signIn.passwordChanged],
    ['password_set', signIn.passwordChosen],
  ]);
}

function listRefused({ signIn }: Messages, upstream: UpstreamLink | undefined): ReadonlyMap<string, RefusedForm> {
  const name = upstream?.name ?? '';
  return new Map([
    ['passkey_refused', { message: signIn.passkeyFailed, status: 422 }],
    ['upstream_refused', { message: signIn.upstreamFailed, status: 422 }],
    ['upstream_unknown', { message: signIn.upstreamUnknown(name), status: 422 }],
    ['upstream_not_fresh', { message: signIn.upstreamNotFresh(name), status: 422 }],
  ]);
}

export function addPasswordRoutes(
  routes: OpenAPIHono<HttpEnv>,
  context: SignInContext,
  upstream: UpstreamLink | undefined,
): void {
  addSignInPage(routes, context, upstream);
  addSignInForm(routes, context);
  addSignOut(routes, context);
}

function addSignInPage(routes: OpenAPIHono<HttpEnv>, context: SignInContext, upstream: UpstreamLink | undefined): void {
  routes.get('/sign-in', async (c) => {
    const messages = readMessages(c);
    const query = new URL(c.req.url).searchParams;
    const word = query.get('done') ?? '';
    const csrfToken = context.issueFormToken(c);
    const refused = readRefused(context, c, csrfToken) ?? listRefused(messages, upstream).get(word);
    const login = refused?.values?.login ?? query.get('login_hint') ?? '';
    return showSignIn(c, {
      context,
      upstream,
      csrfToken,
      flow: readFlow(context.cipher, query),
      login: login.slice(0, 64),
      refused,
      done: listDone(messages).get(word),
      hasEnded: word === SESSION_ENDED,
    });
  });
}

function addSignInForm(routes: OpenAPIHono<HttpEnv>, context: SignInContext): void {
  routes.post('/sign-in', async (c) => {
    const messages = readMessages(c);
    const form = await readForm(c);
    context.checkSignedOutForm(c, form);
    const flow = readFlow(context.cipher, form);
    const login = readField(form, 'login').trim().slice(0, 64);
    const refuse = (refused: RefusedForm) =>
      refuseSignIn(c, context, { flow, refused: { ...refused, values: { login } } });
    const deviceId = findDeviceId(context, c, login);
    const address = clientAddress(c);
    const subjects = attemptSubjects({ kind: 'password', account: login, address, deviceId });
    const caller = { key: deviceId ?? networkOf(address), isKnown: deviceId !== undefined };
    try {
      checkHashPlace(caller);
      await checkAttempt(context.store, { subjects, nowMs: context.world.nowMs() });
    } catch (error) {
      return refuse(toRefusedWait(messages, error));
    }
    const given = { login, password: readField(form, 'password'), caller };
    try {
      const user = await checkPassword(c, context, given);
      if (user === undefined) return refuse({ message: messages.signIn.wrong, status: 422 });
      return await continueSignIn(c, context, { user, flow, subjects });
    } catch (error) {
      if (!isBusy(error)) throw error;
      await takeBackAttempt(context.store, subjects);
      return refuse(toRefusedWait(messages, error));
    }
  });
}

function addSignOut(routes: OpenAPIHono<HttpEnv>, context: SignInContext): void {
  routes.post('/sign-out', async (c) => {
    const form = await readForm(c);
    context.checkForm(c, form);
    const session = await context.currentSession(c);
    if (session !== undefined) {
      const end = { sessionId: session.id, userId: session.user.id, address: clientAddress(c) };
      await endSession(context.store, { ...end, kind: 'sign_out', nowMs: context.world.nowMs() });
    }
    context.cookies.drop(c, 'session');
    // The next person at this browser gets another one.
    context.cookies.drop(c, 'upstream');
    return c.redirect('/sign-in?done=signed_out', 303);
  });
}

/** Redirects (303) to the page with the same flow, so that a reload does not post the form again. */
export function refuseSignIn(
  c: Context<HttpEnv>,
  context: SignInContext,
  { flow, refused }: { readonly flow: Flow; readonly refused: RefusedForm },
): Response {
  return redirectRefused(context, c, {
    page: `/sign-in${formatFlow(flow)}`,
    browser: context.issueFormToken(c),
    refused,
  });
}

async function continueSignIn(
  c: Context<HttpEnv>,
  context: SignInContext,
  { user, flow, subjects }: { readonly user: User; readonly flow: Flow; readonly subjects: readonly AttemptSubject[] },
): Promise<Response> {
  await forgiveAttempt(context.store, subjects);
  if (await hasTotp(context.store, user.id)) return askSecondStep(c, context, { user, flow });
  return context.finishSignIn(c, { user, method: 'password', flow });
}

/** Returns undefined, after the same time, for a wrong password, an unknown login and a disabled person. */
async function checkPassword(
  c: Context<HttpEnv>,
  { store, refusals }: SignInContext,
  given: { readonly login: string; readonly password: string; readonly caller: HashCaller },
): Promise<User | undefined> {
  const credentials = await findCredentials(store, given.login);
  const hash = credentials?.passwordHash;
  const isRight = await isPassword(hash, given.password, given.caller);
  if (!isRight || credentials === undefined || credentials.user.disabledAtMs !== null) {
    const reason = credentials === undefined ? 'unknown login' : isRight ? 'disabled' : 'wrong password';
    const event = { kind: 'sign_in_failed', userId: credentials?.user.id, address: clientAddress(c) } as const;
    await refusals.record({ ...event, details: { method: 'password', reason } });
    return undefined;
  }
  if (typeof hash === 'string' && needsRehash(hash))
    await rehashPassword(store, credentials.user.id, hash, await hashPassword(given.password, given.caller));
  return credentials.user;
}

interface SignInShown {
  readonly context: SignInContext;
  readonly upstream: UpstreamLink | undefined;
  readonly csrfToken: string;
  readonly flow: Flow;
  readonly login: string;
  readonly refused?: RefusedForm | undefined;
  readonly done?: string | undefined;
  readonly hasEnded: boolean;
}

async function showSignIn(c: Context<HttpEnv>, shown: SignInShown): Promise<Response> {
  const { context, upstream, csrfToken, flow, login, refused, done, hasEnded } = shown;
  const session = await context.currentSession(c);
  const messages = readMessages(c);
  const page = renderSignInPage(messages, {
    csrfToken,
    hidden: flow.hidden,
    application: await findAskingApplication(context, flow),
    login,
    mistake: refused,
    done,
    hasEnded,
    current: session && {
      login: session.user.login,
      path: flow.returnTo,
      refusal: explainRefusal(flow, session.user.id),
    },
    canUsePasskeys: canUsePasskeys(context.baseUrl),
    canMail: context.mailer !== undefined,
    missing: await findMissing(context.store),
    upstream: upstream && { name: upstream.name, path: `/sign-in/upstream${formatFlow(flow)}` },
  });
  return respondPage(c, page, { status: refused?.status, leadsToClient: flow.leadsToClient, withScript: true });
}

/** Returns what the service still lacks. The set-up link works until there is an administrator, even if others have accounts. */
async function findMissing(store: SignInContext['store']): Promise<SignInView['missing']> {
  if (await hasAdministrators(store)) return undefined;
  return (await hasUsers(store)) ? 'administrators' : 'accounts';
}

/** Finds the name of the requesting application, so that the person knows why to sign in. The consent page shows its owner too. */
async function findAskingApplication({ store }: SignInContext, flow: Flow): Promise<string | undefined> {
  const clientId = findAskingClientId(flow);
  const application = clientId === undefined ? undefined : await findApplication(store, clientId);
  return application?.disabledAtMs === undefined ? application?.name : undefined;
}
