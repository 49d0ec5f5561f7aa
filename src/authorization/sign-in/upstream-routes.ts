/** Serves the sign-in at an upstream OpenID provider, its callback, and accounts that it creates. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure, isFailure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import { refuseHead } from '../../pages/page-routes.ts';
import type { World } from '../../world.ts';
import { addWayInOnce, refuseMoreWaysIn } from '../accounts/access-store.ts';
import { checkAttempt, forgiveAttempt } from '../accounts/attempt-store.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { isVerifiedEmailTaken, verifyEmailOnce } from '../accounts/email-store.ts';
import { isReadableName } from '../accounts/login.ts';
import { issueOneTimeToken, redeemOneTimeToken } from '../accounts/one-time-token-store.ts';
import { isSameText } from '../accounts/secret-text.ts';
import { challengeSubjects } from '../accounts/sign-in-throttle.ts';
import {
  findUserOfUpstreamAccount,
  linkNewUserStatement,
  linkUpstreamStatement,
} from '../accounts/upstream-account-store.ts';
import { createUser, type User } from '../accounts/user-store.ts';
import { readMessages } from '../messages/messages.ts';
import { formToken } from './cookies.ts';
import { type Flow, formatFlow, readFlow } from './flow.ts';
import { clientAddress } from './read-client-address.ts';
import type { SignInContext } from './sign-in-context.ts';
import type { AuthenticatedPerson, UpstreamPerson, UpstreamProof, UpstreamProvider } from './upstream.ts';

const LIFETIME_SECONDS = 600;
export const UPSTREAM_CALLBACK = '/sign-in/upstream/callback';

/** A sign-in in progress at the provider. Its one-time token is the `state`, valid only in the browser that began. */
interface UpstreamAttempt extends UpstreamProof {
  readonly returnTo: string;
  /** The fields with which a refused attempt leads back to the sign-in page; absent for a link. */
  readonly hidden?: Flow['hidden'] | undefined;
  readonly browser: string;
  /** The signed-in person who links the account; absent for a sign-in. */
  readonly linkUserId?: string | undefined;
}

/** Returns the address to send the browser to, and sets the cookie that its way back needs. */
export async function beginUpstream(
  c: Context<HttpEnv>,
  context: SignInContext,
  attempt: { readonly provider: UpstreamProvider } & Pick<UpstreamAttempt, 'returnTo' | 'hidden' | 'linkUserId'>,
): Promise<URL> {
  const { provider, ...where } = attempt;
  // One cookie for all attempts of a browser: a second tab, or a page that leads here, ends no sign-in under way.
  const known = context.cookies.read(c, 'upstream');
  const value = known ?? Buffer.from(context.world.randomBytes(24)).toString('base64url');
  const proof = provider.createProof(context.world);
  const content: UpstreamAttempt = { ...proof, ...where, browser: formToken(value) };
  const state = await issueOneTimeToken(context, 'upstream', { content, lifetimeMs: LIFETIME_SECONDS * 1000 });
  context.cookies.write(c, 'upstream', { value, maxAgeSeconds: LIFETIME_SECONDS });
  return provider.createAuthorizationUrl(proof, { redirectUri: context.baseUrl + UPSTREAM_CALLBACK, state });
}

export function addUpstreamRoutes(
  routes: OpenAPIHono<HttpEnv>,
  context: SignInContext,
  provider: UpstreamProvider,
): void {
  routes.get('/sign-in/upstream', refuseHead, (c) => goToProvider(c, context, provider));
  routes.get(UPSTREAM_CALLBACK, refuseHead, (c) => finishUpstream(c, context, provider));
}

async function goToProvider(
  c: Context<HttpEnv>,
  context: SignInContext,
  provider: UpstreamProvider,
): Promise<Response> {
  const subjects = challengeSubjects('upstream', clientAddress(c));
  await checkAttempt(context.store, { subjects, nowMs: context.world.nowMs() });
  const { returnTo, hidden } = readFlow(context.cipher, new URL(c.req.url).searchParams);
  const url = await beginUpstream(c, context, { provider, returnTo, hidden });
  return c.redirect(url.href, 303);
}

async function finishUpstream(
  c: Context<HttpEnv>,
  context: SignInContext,
  provider: UpstreamProvider,
): Promise<Response> {
  const messages = readMessages(c);
  const { search, searchParams } = new URL(c.req.url);
  const state = searchParams.get('state') ?? '';
  const attempt = await redeemOneTimeToken<UpstreamAttempt>(context, 'upstream', state);
  const cookie = context.cookies.read(c, 'upstream');
  // Otherwise an attacker could complete their own sign-in in a victim's browser.
  if (attempt === undefined || cookie === undefined || !isSameText(attempt.browser, formToken(cookie)))
    throw new Failure('forbidden', messages.secondStep.tooLate);
  try {
    const address = clientAddress(c);
    const person = await provider.authenticate(attempt, {
      url: new URL(UPSTREAM_CALLBACK + search, context.baseUrl),
      state,
    });
    return attempt.linkUserId === undefined
      ? await signInUpstream(c, context, { provider, person, address, returnTo: attempt.returnTo })
      : await link(c, context, { provider, person, address, userId: attempt.linkUserId });
  } catch (error) {
    return refuse(c, context, { error, attempt });
  }
}

interface Arrival<Person> {
  readonly provider: UpstreamProvider;
  readonly person: Person;
  /** The address of the browser. */
  readonly address: string;
}

async function readProfile(c: Context<HttpEnv>, authenticated: AuthenticatedPerson): Promise<UpstreamPerson> {
  const person = await authenticated.readProfile();
  if (person.profileError !== undefined)
    c.get('log').warn({ err: person.profileError }, 'Cannot read a profile at the upstream provider');
  return person;
}

async function signInUpstream(
  c: Context<HttpEnv>,
  context: SignInContext,
  { provider, person, address, returnTo }: Arrival<AuthenticatedPerson> & { readonly returnTo: string },
): Promise<Response> {
  const messages = readMessages(c);
  const { issuer, signUp, name } = provider.config;
  const known = await findUserOfUpstreamAccount(context.store, issuer, person.subject);
  if (known === undefined && signUp === 'closed') throw new Failure('not_found', messages.signIn.upstreamUnknown(name));
  const user =
    known ?? (await createUpstreamAccount(context, { provider, person: await readProfile(c, person), address }));
  if (user.disabledAtMs !== null) throw new Failure('forbidden', messages.signIn.upstreamRefused(name));
  await forgiveAttempt(context.store, challengeSubjects('upstream', address));
  const response = await context.finishSignIn(c, { user, method: 'upstream', flow: { returnTo } });
  // The session comes first: while the provider takes its time to answer, the account may be unlinked.
  if (known?.isEmailVerified === false) await tryConfirmEmail(c, context, { user: known, person });
  return response;
}

/** The person is signed in by now, whether this fails or not. The next sign-in tries it again. */
async function tryConfirmEmail(
  c: Context<HttpEnv>,
  context: SignInContext,
  { user, person }: { readonly user: User; readonly person: AuthenticatedPerson },
): Promise<void> {
  try {
    await confirmEmail(context, user, await readProfile(c, person));
  } catch (error) {
    c.get('log').warn({ err: error }, 'Cannot verify the address of a person at the upstream provider');
  }
}

/** The provider has verified the address that the person has here too, or the person has none yet. */
async function confirmEmail({ store }: SignInContext, user: User, { email }: UpstreamPerson): Promise<void> {
  if (email === undefined) return;
  if (user.email !== null && user.email.toLowerCase() !== email.toLowerCase()) return;
  const { id: userId, email: seenEmail, credentialGeneration } = user;
  await store.call(verifyEmailOnce, { userId, email, seenEmail, credentialGeneration, statements: [] });
}

/** A first visit makes an account, under the login there or the nearest that is free. */
async function createUpstreamAccount(context: SignInContext, arrival: Arrival<UpstreamPerson>): Promise<User> {
  const { provider, person } = arrival;
  const wanted = chooseLogin(person, provider);
  for (let attempt = 1; attempt <= MAX_LOGIN_TRIES; attempt += 1) {
    try {
      return await makeUser(context, { ...arrival, login: varyLogin(context.world, wanted, attempt) });
    } catch (error) {
      // Two first visits at once: the other one made the account.
      const known = await findUserOfUpstreamAccount(context.store, provider.config.issuer, person.subject);
      if (known !== undefined) return known;
      if (!isFailure(error) || error.code !== 'conflict') throw error;
    }
  }
  throw new Failure('conflict', 'Cannot create the account: too many have this login');
}

const NUMBERED_TRIES = 5;
const MAX_LOGIN_TRIES = 10;

/** The first of the person's names with letters for a login. Throws `unavailable` if there may be one that could not be read. */
function chooseLogin({ login, email, name, profileError }: UpstreamPerson, { config }: UpstreamProvider): string {
  const found = [login, email, name].map((text) => toLogin(text ?? '')).find((text) => text !== '');
  if (found !== undefined || profileError === undefined) return found ?? 'user';
  throw new Failure('unavailable', `${config.name} does not answer at the moment`, {}, { cause: profileError });
}

/** Tries the login itself, then small numbers, then random digits: for a common login, all small numbers may be taken. */
function varyLogin(world: World, login: string, attempt: number): string {
  if (attempt === 1) return login;
  const suffix = attempt <= NUMBERED_TRIES ? attempt : Buffer.from(world.randomBytes(4)).toString('hex');
  return `${login.slice(0, 55)}-${suffix}`;
}

async function makeUser(
  { store, world }: SignInContext,
  { provider, person, address, login }: Arrival<UpstreamPerson> & { readonly login: string },
) {
  const { issuer } = provider.config;
  const nowMs = world.nowMs();
  const label = person.email ?? person.login ?? person.subject;
  // An address that is verified for one account here is not given to another.
  const isTaken = person.email !== undefined && (await isVerifiedEmailTaken(store, person.email));
  const email = isTaken ? null : (person.email ?? null);
  const profile = { name: toName(person.name ?? '', login), email, isEmailVerified: email !== null };
  return createUser(store, world, { ...profile, login, isAdmin: false, passwordHash: null }, (userId) => [
    linkNewUserStatement({ issuer, subject: person.subject, userId, label, linkedAtMs: nowMs }),
    auditStatement({ kind: 'user_created', userId, address, details: { by: issuer } }, nowMs),
  ]);
}

/** Returns the part of a name that is shown, or the login. */
export function toName(text: string, login: string): string {
  // The cut may be within a character of two units.
  const name = text
    .trim()
    .slice(0, 100)
    .replace(/[\ud800-\udbff]$/, '')
    .toWellFormed();
  return isReadableName(name) ? name : login;
}

/** The letters of a name that a login can have, without the domain of an address; empty if it has no such letters. */
export function toLogin(text: string): string {
  // Normalizing takes quadratic time in a run of combining marks, and people choose what they are called there.
  const letters = text
    .slice(0, 200)
    .replace(/(?<=.)@.*/s, '')
    .normalize('NFKD')
    .replace(/[^A-Za-z0-9._-]/g, '')
    .replace(/\.{2,}/g, '.')
    .slice(0, 60);
  return letters.replace(/^[._-]+|[._-]+$/g, '');
}

async function link(
  c: Context<HttpEnv>,
  context: SignInContext,
  { provider, person: authenticated, address, userId }: Arrival<AuthenticatedPerson> & { readonly userId: string },
): Promise<Response> {
  const person = await readProfile(c, authenticated);
  const session = await context.currentSession(c);
  const messages = readMessages(c);
  if (session?.user.id !== userId) throw new Failure('forbidden', messages.secondStep.tooLate);
  const { issuer, name } = provider.config;
  const nowMs = context.world.nowMs();
  const label = person.email ?? person.login ?? person.subject;
  const event = { kind: 'upstream_linked', userId, address, details: { issuer } } as const;
  const outcome = await context.store.call(addWayInOnce, {
    userId,
    credentialGeneration: session.user.credentialGeneration,
    insert: linkUpstreamStatement({ issuer, subject: person.subject, userId, label, linkedAtMs: nowMs }),
    audit: auditStatement(event, nowMs),
  });
  if (outcome === 'full') throw refuseMoreWaysIn();
  if (outcome === 'refused') throw new Failure('conflict', messages.signIn.upstreamTaken(name));
  return c.redirect('/account/security?done=linked', 303);
}

/** A refusal by the provider leads back to the sign-in page; everything else is shown for what it is. */
async function refuse(
  c: Context<HttpEnv>,
  context: SignInContext,
  { error, attempt }: { readonly error: unknown; readonly attempt: UpstreamAttempt },
): Promise<Response> {
  // A person who links an account is signed in already.
  if (attempt.linkUserId === undefined) await recordRefusal(c, context, error);
  if (!isFailure(error) || error.cause === undefined) throw error;
  c.get('log').info({ err: error.cause }, 'The upstream provider refused a sign-in');
  const { hidden = { return_to: attempt.returnTo } } = attempt;
  return c.redirect(`/sign-in${formatFlow({ hidden }, { done: 'upstream_refused' })}`, 303);
}

async function recordRefusal(c: Context<HttpEnv>, context: SignInContext, error: unknown): Promise<void> {
  const reason = isFailure(error) ? error.code : 'internal';
  const details = { method: 'upstream', reason };
  await context.refusals.record({ kind: 'sign_in_failed', address: clientAddress(c), details });
}
