/** Serves the sign-in with a passkey: a challenge, and its answer as a form. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';
import { readField, readForm } from '../../pages/page-routes.ts';
import { checkAttempt, forgiveAttempt } from '../accounts/attempt-store.ts';
import { addressSubjects, challengeSubjects } from '../accounts/sign-in-throttle.ts';
import { readMessages } from '../messages/messages.ts';
import { formatFlow, readFlow } from './flow.ts';
import { beginSignIn, finishSignIn, toCeremonyJson } from './passkeys.ts';
import { refuseSignIn } from './password-routes.ts';
import { clientAddress } from './read-client-address.ts';
import { type SignInContext, toRefusedWait } from './sign-in-context.ts';

/** The script of the page fetches a challenge here and posts the answer as a form. */
export function addPasskeyRoutes(routes: OpenAPIHono<HttpEnv>, context: SignInContext): void {
  routes.post('/sign-in/passkey/options', (c) => offerChallenge(c, context));
  routes.post('/sign-in/passkey', (c) => signInWithPasskey(c, context));
}

async function offerChallenge(c: Context<HttpEnv>, context: SignInContext): Promise<Response> {
  context.checkSignedOutForm(c, await readForm(c));
  // Each challenge adds a row, so a client that requests many has to wait.
  const subjects = challengeSubjects('passkey', clientAddress(c));
  await checkAttempt(context.store, { subjects, nowMs: context.world.nowMs() });
  c.header('Cache-Control', 'no-store');
  return c.json(toCeremonyJson(await beginSignIn(context)));
}

async function signInWithPasskey(c: Context<HttpEnv>, context: SignInContext): Promise<Response> {
  const messages = readMessages(c);
  const form = await readForm(c);
  context.checkSignedOutForm(c, form);
  const flow = readFlow(context.cipher, form);
  const subjects = addressSubjects('passkey', clientAddress(c));
  try {
    await checkAttempt(context.store, { subjects, nowMs: context.world.nowMs() });
  } catch (error) {
    return refuseSignIn(c, context, { flow, refused: toRefusedWait(messages, error) });
  }
  const answer = { challengeToken: readField(form, 'ticket'), credential: readField(form, 'credential') };
  const user = await finishSignIn(context, answer);
  if (user !== undefined) {
    await forgiveAttempt(context.store, [...subjects, ...challengeSubjects('passkey', clientAddress(c))]);
    return context.finishSignIn(c, { user, method: 'passkey', flow });
  }
  const event = { kind: 'sign_in_failed', address: clientAddress(c), details: { method: 'passkey' } } as const;
  await context.refusals.record(event);
  return c.redirect(`/sign-in${formatFlow(flow, { done: 'passkey_refused' })}`, 303);
}
