/** Serves the sign-in at an upstream OpenID provider, its callback, and accounts that it creates. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure, type FailureCode, isFailure } from '../../errors.ts';
import type { HttpEnv } from '../../http/context.ts';
import { refuseHead } from '../../pages/page-routes.ts';
import { MAX_SKEW_MS } from '../../steady-clock.ts';
import type { World } from '../../world.ts';
import { addWayInOnce, refuseMoreWaysIn } from '../accounts/access-store.ts';
import { checkAttempt, forgiveAttempt } from '../accounts/attempt-store.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { emailKey, isVerifiedEmailTaken, verifyEmailOnce } from '../accounts/email-store.ts';
import { toLogin, toName } from '../accounts/login.ts';
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
import {
  type AuthenticatedPerson,
  computeAuthTime,
  type UpstreamPerson,
  type UpstreamProof,
  type UpstreamProvider,
} from './upstream.ts';

const LIFETIME_SECONDS = 600;
export const UPSTREAM_CALLBACK = '/sign-in/upstream/callback';

/** A sign-in in progress at the provider. Its one-time token is the `state`, valid only in the browser that began. */
interface UpstreamAttempt extends UpstreamProof {
  readonly returnTo: string;
  /** The hidden fields with which a refused attempt returns to the sign-in page; absent for a link. */
  readonly hidden?: Flow['hidden'] | undefined;
  readonly browser: string;
  /** The signed-in person who links the account; absent for a sign-in. */
  readonly linkUserId?: string | undefined;
}

/** Returns the URL to which the browser is sent, and sets the cookie that the callback needs. */
export async function beginUpstream(
  c: Context<HttpEnv>,
  context: SignInContext,
  attempt: Pick<UpstreamAttempt, 'returnTo' | 'hidden' | 'linkUserId'> & {
    readonly provider: UpstreamProvider;
    /** Whether the person must sign in at the provider even if they are signed in there. */
    readonly isFresh: boolean;
  },
): Promise<URL> {
  const { provider, isFresh, ...where } = attempt;
  // One cookie for all attempts of a browser, so that a second tab, or a link to this page, ends no sign-in in progress.
  const known = context.cookies.read(c, 'upstream');
  const value = known ?? Buffer.from(context.world.randomBytes(24)).toString('base64url');
  const proof = provider.createProof(context.world, isFresh);
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
  const { returnTo, hidden, again } = readFlow(context.cipher, new URL(c.req.url).searchParams);
  const url = await beginUpstream(c, context, { provider, returnTo, hidden, isFresh: again !== undefined });
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
  // Without this check, an attacker could complete the attacker's sign-in in a victim's browser (login CSRF).
  if (attempt === undefined || cookie === undefined || !isSameText(attempt.browser, formToken(cookie)))
    throw new Failure('forbidden', messages.secondStep.tooLate);
  try {
    const address = clientAddress(c);
    const person = await provider.authenticate(attempt, {
      url: new URL(UPSTREAM_CALLBACK + search, context.baseUrl),
      state,
    });
    return attempt.linkUserId === undefined
      ? await signInUpstream(c, context, { provider, person, address, attempt })
      : await link(c, context, { provider, person, address, userId: attempt.linkUserId });
  } catch (error) {
    return leadBack(c, context, { error, attempt });
  }
}

interface Arrival<Person> {
  readonly provider: UpstreamProvider;
  readonly person: Person;
  /** The IP address of the browser. */
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
  { provider, person, address, attempt }: Arrival<AuthenticatedPerson> & { readonly attempt: UpstreamAttempt },
): Promise<Response> {
  const { issuer, signUp } = provider.config;
  const authTimeMs = computeAuthTime(context.world, person);
  // Allows a minute for the difference of the provider's clock and those of our machines.
  if (authTimeMs < (attempt.freshSinceMs ?? 0) - MAX_SKEW_MS) throw refuse('forbidden', 'upstream_not_fresh');
  const known = await findUserOfUpstreamAccount(context.store, issuer, person.subject);
  if (known === undefined && signUp === 'closed') throw refuse('not_found', 'upstream_unknown');
  const user =
    known ?? (await createUpstreamAccount(context, { provider, person: await readProfile(c, person), address }));
  if (user.disabledAtMs !== null) throw refuse('forbidden', 'upstream_refused');
  await forgiveAttempt(context.store, challengeSubjects('upstream', address));
  const response = await context.finishSignIn(c, { user, method: 'upstream', authTimeMs, flow: attempt });
  // Create the session first: the provider may take long to answer, and the account may be unlinked meanwhile.
  if (known !== undefined && known.email !== null && !known.isEmailVerified)
    await tryConfirmEmail(c, context, { provider, address, user: known, readPerson: () => readProfile(c, person) });
  return response;
}

interface Confirmation {
  readonly provider: UpstreamProvider;
  readonly address: string;
  readonly user: User;
  readonly readPerson: () => Promise<UpstreamPerson>;
}

/** Never throws: the person has signed in or linked the account already, and the next sign-in tries again. */
async function tryConfirmEmail(
  c: Context<HttpEnv>,
  context: SignInContext,
  { readPerson, ...confirmation }: Confirmation,
): Promise<void> {
  try {
    await confirmEmail(context, { ...confirmation, person: await readPerson() });
  } catch (error) {
    c.get('log').warn({ err: error }, 'Cannot verify the address of a person at the upstream provider');
  }
}

/** Sets the address as verified if the provider has verified the person's address here, or if the person has none. */
async function confirmEmail(
  { store, world }: SignInContext,
  { provider, person: { email }, address, user }: Arrival<UpstreamPerson> & Pick<Confirmation, 'user'>,
): Promise<void> {
  if (email === undefined) return;
  if (user.email !== null && emailKey(user.email) !== emailKey(email)) return;
  const { id: userId, email: seenEmail, credentialGeneration } = user;
  const details = { what: 'email', by: provider.config.issuer };
  const statements = [auditStatement({ kind: 'user_changed', userId, address, details }, world.nowMs())];
  await store.call(verifyEmailOnce, { userId, email, seenEmail, credentialGeneration, statements });
}

/** Creates an account at the first sign-in, with the login of the provider or a similar one that is free. */
async function createUpstreamAccount(context: SignInContext, arrival: Arrival<UpstreamPerson>): Promise<User> {
  const { provider, person } = arrival;
  const wanted = chooseLogin(person, provider);
  for (let attempt = 1; attempt <= MAX_LOGIN_TRIES; attempt += 1) {
    try {
      return await makeUser(context, { ...arrival, login: varyLogin(context.world, wanted, attempt) });
    } catch (error) {
      // Of two concurrent first sign-ins, the other one created the account.
      const known = await findUserOfUpstreamAccount(context.store, provider.config.issuer, person.subject);
      if (known !== undefined) return known;
      if (!isFailure(error) || error.code !== 'conflict') throw error;
    }
  }
  throw new Failure('conflict', 'Cannot create the account: too many accounts have this login');
}

const NUMBERED_TRIES = 5;
const MAX_LOGIN_TRIES = 10;

/** Makes a login of the first usable name. Throws `unavailable` without one if the profile could not be read. */
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
  // An address that is verified for another account here is left out.
  const isTaken = person.email !== undefined && (await isVerifiedEmailTaken(store, person.email));
  const email = isTaken ? null : (person.email ?? null);
  const profile = { name: toName(person.name ?? '', login), email, isEmailVerified: email !== null };
  return createUser(store, world, { ...profile, login, isAdmin: false, passwordHash: null }, (userId) => [
    linkNewUserStatement({ issuer, subject: person.subject, userId, label, linkedAtMs: nowMs }),
    auditStatement({ kind: 'user_created', userId, address, details: { by: issuer } }, nowMs),
  ]);
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
  const { user } = session;
  if (!user.isEmailVerified)
    await tryConfirmEmail(c, context, { provider, address, user, readPerson: () => Promise.resolve(person) });
  return c.redirect('/account/security?done=linked', 303);
}

/** The values of `done` for which the sign-in page explains a refusal (password-routes.ts). */
type Refusal = 'upstream_refused' | 'upstream_unknown' | 'upstream_not_fresh';

function refuse(code: FailureCode, done: Refusal): Failure {
  return new Failure(code, 'Cannot sign in a person of the upstream provider', { done });
}

/** Redirects to the page where the person began if it can explain the refusal; otherwise throws the error again. */
async function leadBack(
  c: Context<HttpEnv>,
  context: SignInContext,
  { error, attempt }: { readonly error: unknown; readonly attempt: UpstreamAttempt },
): Promise<Response> {
  // Linking an account is not a sign-in.
  const isLink = attempt.linkUserId !== undefined;
  if (!isLink) await recordRefusal(c, context, error);
  const done = findRefusal(c, error);
  if (done === undefined) throw error;
  if (isLink) return c.redirect(`${attempt.returnTo}?done=not_linked`, 303);
  const { hidden = { return_to: attempt.returnTo } } = attempt;
  return c.redirect(`/sign-in${formatFlow({ hidden }, { done })}`, 303);
}

/** Finds the explanation. Refusals and failures of the provider have a cause, which is only logged. */
function findRefusal(c: Context<HttpEnv>, error: unknown): Refusal | undefined {
  if (!isFailure(error)) return undefined;
  if (error.cause === undefined) return error.details.done as Refusal | undefined;
  c.get('log').info({ err: error.cause }, 'The upstream provider refused a sign-in');
  return 'upstream_refused';
}

async function recordRefusal(c: Context<HttpEnv>, context: SignInContext, error: unknown): Promise<void> {
  const reason = isFailure(error) ? error.code : 'internal';
  const details = { method: 'upstream', reason };
  await context.refusals.record({ kind: 'sign_in_failed', address: clientAddress(c), details });
}
