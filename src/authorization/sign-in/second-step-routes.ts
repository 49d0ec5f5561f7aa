/**
 * Serves the second step of a sign-in: the code of an authenticator app, or a recovery code. Between the steps the person is not
 * signed in; the browser has a one-time token that is valid for ten minutes, for one person, and only for this step.
 */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';
import { respondPage } from '../../pages/page-response.ts';
import { readField, readForm } from '../../pages/page-routes.ts';
import { type RefusedForm, readRefused, redirectRefused } from '../../pages/refused-form.ts';
import { checkAttempt, forgiveAttempt } from '../accounts/attempt-store.ts';
import { findOneTimeToken, issueOneTimeToken, redeemOneTimeToken } from '../accounts/one-time-token-store.ts';
import type { SignInMethod } from '../accounts/session-store.ts';
import { attemptSubjects } from '../accounts/sign-in-throttle.ts';
import { findTotpSeed, spendRecoveryCode, spendTotpTimeStep } from '../accounts/totp-store.ts';
import { findUserById, type User } from '../accounts/user-store.ts';
import { readMessages } from '../messages/messages.ts';
import { type Flow, formatFlow, readFlow } from './flow.ts';
import { clientAddress } from './read-client-address.ts';
import { type SignInContext, toRefusedWait } from './sign-in-context.ts';
import { renderSecondStepPage } from './sign-in-page.ts';
import { findTimeStep } from './totp.ts';

const PATH = '/sign-in/second-step';
const LIFETIME_SECONDS = 600;

interface PendingSignIn {
  readonly userId: string;
  /** The credential generation: a new password that is set meanwhile ends this sign-in. */
  readonly epoch: number;
}

/** Redirects to the second step after a right password. */
export async function askSecondStep(
  c: Context<HttpEnv>,
  context: SignInContext,
  { user, flow }: { readonly user: User; readonly flow: Flow },
): Promise<Response> {
  const content: PendingSignIn = { userId: user.id, epoch: user.credentialGeneration };
  const value = await issueOneTimeToken(context, 'second-step', { content, lifetimeMs: LIFETIME_SECONDS * 1000 });
  context.cookies.write(c, 'step', { value, maxAgeSeconds: LIFETIME_SECONDS });
  return c.redirect(`${PATH}${formatFlow(flow)}`, 303);
}

export function addSecondStepRoutes(routes: OpenAPIHono<HttpEnv>, context: SignInContext): void {
  routes.get(PATH, (c) => showSecondStep(c, context));
  routes.post(PATH, (c) => submitCode(c, context));
}

async function showSecondStep(c: Context<HttpEnv>, context: SignInContext): Promise<Response> {
  const messages = readMessages(c);
  const flow = readFlow(context.cipher, new URL(c.req.url).searchParams);
  if (context.cookies.read(c, 'step') === undefined) return c.redirect(`/sign-in${formatFlow(flow)}`, 303);
  const csrfToken = context.issueFormToken(c);
  const refused = readRefused(context, c, csrfToken);
  const backPath = `/sign-in${formatFlow(flow)}`;
  const page = renderSecondStepPage(messages, { csrfToken, hidden: flow.hidden, backPath, mistake: refused });
  return respondPage(c, page, { status: refused?.status, leadsToClient: flow.leadsToClient, withScript: true });
}

async function submitCode(c: Context<HttpEnv>, context: SignInContext): Promise<Response> {
  const messages = readMessages(c);
  const form = await readForm(c);
  context.checkSignedOutForm(c, form);
  const flow = readFlow(context.cipher, form);
  const token = context.cookies.read(c, 'step') ?? '';
  const user = await findPendingUser(context, token);
  if (user === undefined) return c.redirect(`/sign-in${formatFlow(flow)}`, 303);
  const subjects = attemptSubjects({ kind: 'second-step', account: user.id, address: clientAddress(c) });
  try {
    await checkAttempt(context.store, { subjects, nowMs: context.world.nowMs() });
  } catch (error) {
    return refuse(c, context, { flow, refused: toRefusedWait(messages, error) });
  }
  const proof = { user, code: readField(form, 'code'), address: clientAddress(c) };
  const method = await spendCode(context, proof);
  if (method === undefined) return refuseCode(c, context, { user, flow });
  // Redeemed only now: two concurrent right codes sign in once.
  if ((await redeemOneTimeToken(context, 'second-step', token)) === undefined)
    return c.redirect(`/sign-in${formatFlow(flow)}`, 303);
  await forgiveAttempt(context.store, subjects);
  return context.finishSignIn(c, { user, method, flow });
}

async function findPendingUser(context: SignInContext, token: string): Promise<User | undefined> {
  const pending = await findOneTimeToken<PendingSignIn>(context, 'second-step', token);
  const user = pending && (await findUserById(context.store, pending.userId));
  const isSame = user?.credentialGeneration === pending?.epoch && user?.disabledAtMs === null;
  return isSame ? user : undefined;
}

/** Returns the method of a right code, which is then spent, or undefined. */
async function spendCode(
  { store, cipher, world }: SignInContext,
  { user, code, address }: { readonly user: User; readonly code: string; readonly address: string },
): Promise<SignInMethod | undefined> {
  const nowMs = world.nowMs();
  const seed = await findTotpSeed(store, cipher, user.id);
  const timeStep = seed && findTimeStep(seed, code, nowMs);
  if (timeStep && (await spendTotpTimeStep(store, user.id, timeStep))) return 'password+totp';
  const isRecovery = code.length >= 16 && (await spendRecoveryCode(store, { userId: user.id, code, address, nowMs }));
  return isRecovery ? 'password+recovery' : undefined;
}

async function refuseCode(
  c: Context<HttpEnv>,
  context: SignInContext,
  { user, flow }: { readonly user: User; readonly flow: Flow },
): Promise<Response> {
  const messages = readMessages(c);
  const event = { kind: 'sign_in_failed', userId: user.id, address: clientAddress(c) } as const;
  const details = { method: 'second step', reason: 'wrong code' };
  await context.refusals.record({ ...event, details });
  return refuse(c, context, { flow, refused: { message: messages.secondStep.wrong, status: 422 } });
}

/** Shows the form again without the code: a refused code may be right later, or at another service. */
function refuse(
  c: Context<HttpEnv>,
  context: SignInContext,
  { flow, refused }: { readonly flow: Flow; readonly refused: RefusedForm },
): Response {
  const page = `${PATH}${formatFlow(flow)}`;
  return redirectRefused(context, c, { page, browser: context.issueFormToken(c), refused });
}
