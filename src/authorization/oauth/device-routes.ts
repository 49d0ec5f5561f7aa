/** RFC 8628 §3.3, the user's side: type the code, see who asks for what, decide. */
import type { Context } from 'hono';
import { Failure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import type { RouteMount } from '../../http/mount.ts';
import { respondPage } from '../../pages/page-response.ts';
import { createPageRoutes, readForm } from '../../pages/page-routes.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { type Application, findApplication } from '../applications/application-store.ts';
import { formatScope, listGrantable, readScopes, type Scope } from '../applications/scope.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import type { Session, SignIn } from '../sign-in/sign-in.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { renderConsentPage } from './consent-page.ts';
import { createConsentView, readChosenScopes } from './consent-view.ts';
import { parseUserCode } from './device.ts';
import { renderDeviceDonePage, renderDevicePage } from './device-page.ts';
import { decryptRequest, encryptRequest } from './encrypted-request.ts';
import { findConsent } from './protocol/consent-store.ts';
import { approveDeviceOnce, denyDeviceOnce, findPendingDevice, type PendingDevice } from './protocol/device-store.ts';

interface DeviceDependencies extends ProtocolDependencies {
  readonly signIn: SignIn;
}

const PATH = '/device';
const REQUEST_KIND = 'device';
const OUTCOMES = ['approved', 'denied'] as const;
const UNKNOWN_CODE = 'This code is unknown or has expired. Check it on the device.';

export function createDeviceMount(dependencies: DeviceDependencies): RouteMount {
  const routes = createPageRoutes();
  routes.get('/', async (c) => {
    const session = await dependencies.signIn.currentSession(c);
    const typed = c.req.query('user_code') ?? '';
    if (session === undefined) {
      const query = typed === '' ? '' : `?${new URLSearchParams({ user_code: typed.slice(0, 20) }).toString()}`;
      return dependencies.signIn.redirectToSignIn(c, PATH + query);
    }
    const outcome = OUTCOMES.find((candidate) => candidate === c.req.query('done'));
    if (outcome !== undefined) return respondPage(c, renderDeviceDonePage(outcome));
    return showCodePage(c, session, { typed: typed.slice(0, 20) });
  });
  routes.post('/', async (c) => {
    const form = await readForm(c);
    dependencies.signIn.checkForm(c, form);
    const session = await dependencies.signIn.currentSession(c);
    if (session === undefined) return dependencies.signIn.redirectToSignIn(c, PATH);
    const ciphertext = form.get('request');
    if (ciphertext === null) return showRequest(dependencies, c, { session, typed: form.get('user_code') ?? '' });
    const device = decryptRequest<PendingDevice>(dependencies, session, { kind: REQUEST_KIND, ciphertext });
    const kept = readChosenScopes(form, readScopes(device.scope));
    return decide(dependencies, c, { session, device, kept: form.get('decision') === 'allow' ? kept : [] });
  });
  return { path: PATH, errors: 'page', routes };
}

function showCodePage(
  c: Context<HttpEnv>,
  session: Session,
  { typed, mistake }: { readonly typed: string; readonly mistake?: string },
): Promise<Response> {
  const view = { csrfToken: session.csrfToken, action: PATH, userCode: typed };
  if (mistake === undefined) return respondPage(c, renderDevicePage(view));
  return respondPage(c, renderDevicePage({ ...view, mistake: { message: mistake, field: 'user_code' } }), {
    status: 400,
  });
}

interface Typed {
  readonly session: Session;
  readonly typed: string;
}

/** §5.1: a code is short, so guesses are limited by person and network. */
async function showRequest(
  dependencies: DeviceDependencies,
  c: Context<HttpEnv>,
  { session, typed }: Typed,
): Promise<Response> {
  const subjects = [session.user.id, clientAddress(c)];
  for (const subject of subjects) dependencies.limits.check('user_code', subject);
  const userCode = parseUserCode(typed);
  const device = userCode && (await findPendingDevice(dependencies.store, userCode, dependencies.world.nowMs()));
  if (!device) {
    for (const subject of subjects) dependencies.limits.countFailure('user_code', subject);
    return showCodePage(c, session, { typed: typed.slice(0, 20), mistake: UNKNOWN_CODE });
  }
  const application = await requireApplication(dependencies, device);
  const scopes = listGrantable(readScopes(device.scope), session.user);
  if (scopes.length === 0) throw new Failure('forbidden', 'The device asks for rights that you do not have');
  const view = await createConsentView(dependencies, {
    application,
    session,
    scopes,
    canNarrow: false,
    consented: (await findConsent(dependencies.store, session.user.id, application.clientId))?.scopes ?? [],
    redirectUri: undefined,
    request: encryptRequest(dependencies, session, {
      kind: REQUEST_KIND,
      content: { ...device, scope: formatScope(scopes) },
    }),
    action: PATH,
    switchAccountUrl: '/sign-in?return_to=%2Fdevice',
  });
  return respondPage(c, renderConsentPage(view));
}

async function requireApplication(dependencies: DeviceDependencies, { clientId }: PendingDevice): Promise<Application> {
  const application = await findApplication(dependencies.store, clientId);
  if (application !== undefined && application.disabledAtMs === undefined) return application;
  throw new Failure('invalid', 'The application that asks is not known any more');
}

interface Decision {
  readonly session: Session;
  readonly device: PendingDevice;
  /** Nothing when the person refuses, or leaves nothing chosen. */
  readonly kept: readonly Scope[];
}

async function decide(
  dependencies: DeviceDependencies,
  c: Context<HttpEnv>,
  { session, device, kept }: Decision,
): Promise<Response> {
  const { clientId } = await requireApplication(dependencies, device);
  const nowMs = dependencies.world.nowMs();
  const { userCode } = device;
  const { user, authTimeMs } = session;
  const isAllowed = kept.length > 0;
  const event = {
    userId: user.id,
    clientId,
    address: clientAddress(c),
    details: { scope: isAllowed ? formatScope(kept) : device.scope },
  };
  const decision = {
    userId: user.id,
    clientId,
    asked: readScopes(device.scope),
    kept,
    newConsentId: dependencies.world.uuid(),
    nowMs,
  };
  const isDecided = isAllowed
    ? await dependencies.store.call(approveDeviceOnce, {
        userCode,
        decision,
        credentialGeneration: user.credentialGeneration,
        authTimeMs,
        audit: auditStatement({ ...event, kind: 'device_approved' }, nowMs),
      })
    : await dependencies.store.call(denyDeviceOnce, {
        userCode,
        userId: user.id,
        nowMs,
        audit: auditStatement({ ...event, kind: 'device_denied' }, nowMs),
      });
  if (!isDecided) return showCodePage(c, session, { typed: '', mistake: UNKNOWN_CODE });
  return c.redirect(`${PATH}?done=${isAllowed ? 'approved' : 'denied'}`, 303);
}
