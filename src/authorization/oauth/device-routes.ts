/** Serves the page `/device`, where a person enters the code, sees what the device requests, and decides (RFC 8628 §3.3). */
import type { Context } from 'hono';
import { Failure, isFailure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import type { RouteMount } from '../../http/mount.ts';
import { respondPage } from '../../pages/page-response.ts';
import { createPageRoutes, readForm, toSentence } from '../../pages/page-routes.ts';
import { type RefusedForm, readRefused, redirectRefused } from '../../pages/refused-form.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { type Application, findApplication } from '../applications/application-store.ts';
import { formatScope, listGrantable, readScopes, type Scope } from '../applications/scope.ts';
import { type Messages, readMessages } from '../messages/messages.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import type { Session, SignIn } from '../sign-in/sign-in.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { renderConsentPage } from './consent-page.ts';
import { createConsentView, readChosenScopes } from './consent-view.ts';
import { formatUserCode, parseUserCode } from './device.ts';
import { renderDeviceDonePage, renderDevicePage } from './device-page.ts';
import { decryptRequest, encryptRequest } from './encrypted-request.ts';
import { findConsent } from './protocol/consent-store.ts';
import {
  approveDeviceOnce,
  denyDeviceOnce,
  findDeviceDecision,
  findPendingDevice,
  type PendingDevice,
} from './protocol/device-store.ts';

interface DeviceDependencies extends ProtocolDependencies {
  readonly signIn: SignIn;
}

const PATH = '/device';
const MAX_TYPED_LENGTH = 20;
const REQUEST_KIND = 'device';
const OUTCOMES = ['approved', 'denied'] as const;
const UNKNOWN_CODE = 'This code is unknown or has expired. Check it on the device.';

export function createDeviceMount(dependencies: DeviceDependencies): RouteMount {
  const { respondRefusal } = dependencies.signIn.context;
  const routes = createPageRoutes(respondRefusal);
  routes.get('/', async (c) => {
    const session = await dependencies.signIn.currentSession(c);
    const messages = readMessages(c);
    const userCode = (c.req.query('user_code') ?? '').slice(0, MAX_TYPED_LENGTH);
    if (session === undefined) return leadToSignIn(dependencies, c, userCode);
    const outcome = OUTCOMES.find((candidate) => candidate === c.req.query('done'));
    if (outcome !== undefined) return respondPage(c, renderDeviceDonePage(messages, outcome));
    const ciphertext = c.req.query('request');
    if (ciphertext !== undefined)
      return catchRefusal(dependencies, c, {
        session,
        userCode: '',
        answer: () => showRequest(dependencies, c, { session, ciphertext }),
      });
    return showCodeForm(dependencies, c, { session, userCode });
  });
  routes.post('/', async (c) => {
    const form = await readForm(c);
    dependencies.signIn.checkForm(c, form);
    const session = await dependencies.signIn.currentSession(c);
    const userCode = form.get('user_code') ?? '';
    if (session === undefined) return leadToSignIn(dependencies, c, userCode.slice(0, MAX_TYPED_LENGTH));
    const ciphertext = form.get('request');
    const entry = { session, userCode };
    return catchRefusal(dependencies, c, {
      ...entry,
      answer: () =>
        ciphertext === null
          ? acceptCode(dependencies, c, entry)
          : readDecision(dependencies, c, { session, form, ciphertext }),
    });
  });
  return { path: PATH, errors: 'page', routes, respondPage: respondRefusal };
}

function leadToSignIn(dependencies: DeviceDependencies, c: Context<HttpEnv>, userCode: string): Response {
  return dependencies.signIn.redirectToSignIn(c, formatCodePath(userCode));
}

/** Formats the path of the form with this code filled in. */
function formatCodePath(userCode: string): string {
  return userCode === '' ? PATH : `${PATH}?${new URLSearchParams({ user_code: userCode }).toString()}`;
}

/** Shows the form for the code, with the refusal of the last one. */
function showCodeForm(
  dependencies: DeviceDependencies,
  c: Context<HttpEnv>,
  { session, userCode }: CodeEntry,
): Response | Promise<Response> {
  const mistake = readRefused(dependencies, c, session.csrfToken);
  const page = renderDevicePage(readMessages(c), {
    csrfToken: session.csrfToken,
    action: PATH,
    userCode: (mistake?.values?.user_code ?? userCode).slice(0, MAX_TYPED_LENGTH),
    mistake,
  });
  return respondPage(c, page, { status: mistake?.status, withScript: true });
}

/** If `answer` throws an error that the person can correct, redirects (303) to the form for the code. */
async function catchRefusal(
  dependencies: DeviceDependencies,
  c: Context<HttpEnv>,
  { session, userCode, answer }: CodeEntry & { readonly answer: () => Promise<Response> },
): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    const refused = {
      ...toRefused(readMessages(c), error),
      values: { user_code: userCode.slice(0, MAX_TYPED_LENGTH) },
    };
    return redirectRefused(dependencies, c, { page: PATH, browser: session.csrfToken, refused });
  }
}

/** Returns the refusal that the form shows. Throws any other error again. */
function toRefused(messages: Messages, error: unknown): RefusedForm {
  if (!isFailure(error)) throw error;
  const { field, retryAfterSeconds } = error.details;
  const message = messages.explain(toSentence(error.message));
  if (error.code === 'invalid') return { message, field, status: 400 };
  if (error.code === 'forbidden') return { message, status: 403 };
  if (error.code !== 'too_many' || retryAfterSeconds === undefined) throw error;
  return { message: messages.signIn.wait(retryAfterSeconds), status: 429, retryAfterSeconds };
}

async function readDecision(
  dependencies: DeviceDependencies,
  c: Context<HttpEnv>,
  {
    session,
    form,
    ciphertext,
  }: { readonly session: Session; readonly form: URLSearchParams; readonly ciphertext: string },
): Promise<Response> {
  const device = decryptRequest<PendingDevice>(dependencies, session, { kind: REQUEST_KIND, ciphertext });
  const chosen = readChosenScopes(form, readScopes(device.scope));
  return decide(dependencies, c, { session, device, allowedScopes: form.get('decision') === 'allow' ? chosen : [] });
}

interface CodeEntry {
  readonly session: Session;
  /** The code as the person typed it. */
  readonly userCode: string;
}

/** Checks a typed code and redirects to the consent page. Codes are short, so guesses are limited by person and address (§5.1). */
async function acceptCode(
  dependencies: DeviceDependencies,
  c: Context<HttpEnv>,
  { session, userCode: typed }: CodeEntry,
): Promise<Response> {
  const device = await findTypedDevice(dependencies, { typed, subjects: [session.user.id, clientAddress(c)] });
  await requireApplication(dependencies, device);
  const scopes = listGrantable(readScopes(device.scope), session.user);
  if (scopes.length === 0) throw new Failure('forbidden', 'The device requests rights that you do not have');
  const content = { ...device, scope: formatScope(scopes) };
  const request = encryptRequest(dependencies, session, { kind: REQUEST_KIND, content });
  return c.redirect(`${PATH}?${new URLSearchParams({ request }).toString()}`, 303);
}

/** Counts each guess before its check, so that guesses sent at once all count. A guess that is right or cannot be checked is taken back. */
async function findTypedDevice(
  { limits, store, world }: DeviceDependencies,
  { typed, subjects }: { readonly typed: string; readonly subjects: readonly string[] },
): Promise<PendingDevice> {
  for (const subject of subjects) limits.check('user_code', subject);
  for (const subject of subjects) limits.countFailure('user_code', subject);
  const takeBack = () => {
    for (const subject of subjects) limits.takeBack('user_code', subject);
  };
  const userCode = parseUserCode(typed);
  if (userCode === undefined) throw refuseCode();
  const device = await findPendingDevice(store, userCode, world.nowMs()).catch((error: unknown) => {
    takeBack();
    throw error;
  });
  if (device === undefined) throw refuseCode();
  takeBack();
  return device;
}

/** Shows the consent page, which only the session that typed the code can open. */
async function showRequest(
  dependencies: DeviceDependencies,
  c: Context<HttpEnv>,
  { session, ciphertext }: { readonly session: Session; readonly ciphertext: string },
): Promise<Response> {
  const device = decryptRequest<PendingDevice>(dependencies, session, { kind: REQUEST_KIND, ciphertext });
  const isPending = await findPendingDevice(dependencies.store, device.userCode, dependencies.world.nowMs());
  if (isPending === undefined) throw refuseCode();
  const application = await requireApplication(dependencies, device);
  const view = await createConsentView(dependencies, {
    application,
    session,
    scopes: readScopes(device.scope),
    canDeselectScopes: false,
    consented: (await findConsent(dependencies.store, session.user.id, application.clientId))?.scopes ?? [],
    redirectUri: undefined,
    request: ciphertext,
    action: PATH,
    switchAccountUrl: `/sign-in?${new URLSearchParams({ return_to: formatCodePath(formatUserCode(device.userCode)) }).toString()}`,
  });
  return respondPage(c, renderConsentPage(readMessages(c), view), { withScript: true });
}

async function requireApplication(dependencies: DeviceDependencies, { clientId }: PendingDevice): Promise<Application> {
  const application = await findApplication(dependencies.store, clientId);
  if (application !== undefined && application.disabledAtMs === undefined) return application;
  throw new Failure('invalid', 'The application of this device no longer exists');
}

function refuseCode(): Failure {
  return new Failure('invalid', UNKNOWN_CODE, { field: 'user_code' });
}

interface Decision {
  readonly session: Session;
  readonly device: PendingDevice;
  /** Empty if the person refuses or chooses nothing. */
  readonly allowedScopes: readonly Scope[];
}

async function decide(dependencies: DeviceDependencies, c: Context<HttpEnv>, decision: Decision): Promise<Response> {
  await requireApplication(dependencies, decision.device);
  const isAllowed = decision.allowedScopes.length > 0;
  const answer = isAllowed ? approve : deny;
  const isDecidedNow = await answer(dependencies, decision, clientAddress(c));
  // A second click posts the form twice: the second one shows the decision of the first.
  const decided = isAllowed ? 'approved' : 'denied';
  const outcome = isDecidedNow ? decided : await findOwnDecision(dependencies, decision);
  if (outcome === undefined) throw refuseCode();
  return c.redirect(`${PATH}?done=${outcome}`, 303);
}

function findOwnDecision({ store, world }: DeviceDependencies, { session, device }: Decision) {
  const { userCode } = device;
  return findDeviceDecision(store, { userCode, userId: session.user.id, nowMs: world.nowMs() });
}

/** False if the device was decided on meanwhile. */
async function approve(
  { store, world }: DeviceDependencies,
  { session, device, allowedScopes }: Decision,
  address: string,
): Promise<boolean> {
  const { user, authTimeMs } = session;
  const { userCode, clientId } = device;
  const nowMs = world.nowMs();
  const person = { userId: user.id, clientId };
  const event = { ...person, address, details: { scope: formatScope(allowedScopes) } };
  return await store.call(approveDeviceOnce, {
    userCode,
    decision: { ...person, asked: readScopes(device.scope), allowedScopes, newConsentId: world.uuid(), nowMs },
    credentialGeneration: user.credentialGeneration,
    authTimeMs,
    audit: auditStatement({ ...event, kind: 'device_approved' }, nowMs),
  });
}

/** False if the device was decided on meanwhile. */
async function deny(
  { store, world }: DeviceDependencies,
  { session, device: { userCode, clientId, scope } }: Decision,
  address: string,
): Promise<boolean> {
  const nowMs = world.nowMs();
  const userId = session.user.id;
  const event = { kind: 'device_denied', userId, clientId, address, details: { scope } } as const;
  return await store.call(denyDeviceOnce, { userCode, userId, nowMs, audit: auditStatement(event, nowMs) });
}
