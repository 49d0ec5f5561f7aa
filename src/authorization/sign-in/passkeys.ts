/**
 * Runs the ceremonies of passkeys, registration and sign-in, and accepts each challenge once (WebAuthn Level 3). The challenge is
 * in a one-time token, so an answer is valid only for its own ceremony.
 */
import type {
  AuthenticationResponseJSON,
  GenerateRegistrationOptionsOpts,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import { Failure } from '../../errors.ts';
import { parseJson } from '../../http/parser-limits.ts';
import { addWayInOnce, checkPlaceForWayIn, refuseMoreWaysIn } from '../accounts/access-store.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { isReadableName } from '../accounts/login.ts';
import { issueOneTimeToken, redeemOneTimeToken } from '../accounts/one-time-token-store.ts';
import {
  findPasskey,
  insertPasskeyStatement,
  listPasskeys,
  type Passkey,
  usePasskey,
} from '../accounts/passkey-store.ts';
import { findUserById, type User } from '../accounts/user-store.ts';
import type { SignInContext } from './sign-in-context.ts';

/** COSE algorithms EdDSA, ES256, RS256: every authenticator supports one of them; newer ones are experimental in Node. */
const ALGORITHMS = [-8, -7, -257];
const CHALLENGE_MS = 5 * 60_000;

type Transports = NonNullable<GenerateRegistrationOptionsOpts['excludeCredentials']>;

/** Loaded at the first ceremony, since its certificate parsers would take a tenth of the time of every start. */
const loadCeremonies = () => import('@simplewebauthn/server');

export interface Ceremony<Options> {
  /** The one-time token of the challenge, which the browser sends back with the answer. */
  readonly challengeToken: string;
  readonly options: Options;
}

/** Returns the JSON for passkey.js. It calls the token `ticket`, as pages of an earlier release do. */
export function toCeremonyJson<Options>({ challengeToken, options }: Ceremony<Options>) {
  return { ticket: challengeToken, options };
}

export interface CeremonyAnswer {
  /** The one-time token of the challenge. */
  readonly challengeToken: string;
  /** JSON, as the script of the page sends it. */
  readonly credential: string;
}

function relyingParty(baseUrl: string) {
  const url = new URL(baseUrl);
  return { rpID: url.hostname, origin: url.origin };
}

/** Browsers support passkeys only for a host name, not for an IP address, and only over https or at `localhost`. */
export function canUsePasskeys(baseUrl: string): boolean {
  const { hostname, protocol } = new URL(baseUrl);
  const isAddress = /^[\d.]+$/.test(hostname) || hostname.startsWith('[');
  return !isAddress && (protocol === 'https:' || hostname === 'localhost');
}

/** Throws `conflict` if the person has as many passkeys and linked accounts as allowed. */
export async function beginRegistration(context: SignInContext, user: User) {
  await checkPlaceForWayIn(context.store, user.id);
  const { rpID } = relyingParty(context.baseUrl);
  const known = await listPasskeys(context.store, user.id);
  const { generateRegistrationOptions } = await loadCeremonies();
  const options = await generateRegistrationOptions({
    rpName: 'Trivet',
    rpID,
    userName: user.login,
    userDisplayName: user.name,
    userID: Uint8Array.from(Buffer.from(user.id)),
    supportedAlgorithmIDs: ALGORITHMS,
    excludeCredentials: known.map(({ id, transports }) => ({ id, transports: [...transports] })) as Transports,
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
  const content = { challenge: options.challenge, userId: user.id };
  const challengeToken = await issueOneTimeToken(context, 'passkey-registration', {
    content,
    lifetimeMs: CHALLENGE_MS,
  });
  return { challengeToken, options } satisfies Ceremony<typeof options>;
}

export const MAX_PASSKEY_NAME_LENGTH = 60;

/** Throws `invalid` for a name that is too long or not readable. */
export function checkPasskeyName(name: string): void {
  if (name.length > MAX_PASSKEY_NAME_LENGTH)
    throw new Failure(
      'invalid',
      `Cannot add the passkey: its name must be at most ${MAX_PASSKEY_NAME_LENGTH} characters`,
    );
  if (!isReadableName(name))
    throw new Failure('invalid', 'Cannot add the passkey: its name must be readable, without hidden characters');
}

export interface NewPasskey {
  readonly user: User;
  readonly name: string;
  /** The IP address of the browser. */
  readonly address: string;
  readonly answer: CeremonyAnswer;
}

/** Throws `invalid` for the answer to another challenge or of another origin, and `conflict` as `beginRegistration` does. */
export async function finishRegistration(
  context: SignInContext,
  { user, name, address, answer }: NewPasskey,
): Promise<void> {
  const asked = await redeemOneTimeToken<{ challenge: string; userId: string }>(
    context,
    'passkey-registration',
    answer.challengeToken,
  );
  if (asked?.userId !== user.id) throw refuse();
  const { rpID, origin } = relyingParty(context.baseUrl);
  const response = parseCredential<RegistrationResponseJSON>(answer.credential);
  const { verifyRegistrationResponse } = await loadCeremonies();
  const verified = await verifyRegistrationResponse({
    response,
    expectedChallenge: asked.challenge,
    expectedOrigin: origin,
    expectedRPID: rpID,
    requireUserVerification: true,
    supportedAlgorithmIDs: ALGORITHMS,
  }).catch(refuseWith);
  if (!verified.verified) throw refuse();
  const { id, publicKey, counter } = verified.registrationInfo.credential;
  const nowMs = context.world.nowMs();
  const transports = readTransports(response.response.transports);
  const outcome = await context.store.call(addWayInOnce, {
    userId: user.id,
    credentialGeneration: user.credentialGeneration,
    insert: insertPasskeyStatement({ id, userId: user.id, name, publicKey, counter, transports, createdAtMs: nowMs }),
    audit: auditStatement({ kind: 'passkey_added', userId: user.id, address, details: { name } }, nowMs),
  });
  if (outcome === 'full') throw refuseMoreWaysIn();
  if (outcome === 'refused') throw refuse();
}

/** Keeps only known transports: the browser's list is an unchecked hint. */
function readTransports(given: unknown): string[] {
  const names: readonly unknown[] = Array.isArray(given) ? given : [];
  return names.filter((name) => typeof name === 'string' && /^[a-z-]{1,20}$/.test(name)) as string[];
}

export async function beginSignIn(context: SignInContext) {
  const { rpID } = relyingParty(context.baseUrl);
  // No list of credentials: the browser offers those that it has, and the response does not reveal who has a passkey here.
  const { generateAuthenticationOptions } = await loadCeremonies();
  const options = await generateAuthenticationOptions({ rpID, userVerification: 'required' });
  const content = { challenge: options.challenge };
  const challengeToken = await issueOneTimeToken(context, 'passkey-sign-in', { content, lifetimeMs: CHALLENGE_MS });
  return { challengeToken, options } satisfies Ceremony<typeof options>;
}

/** Returns the person, or undefined. A passkey with user verification counts as both steps: possession, and a biometric or PIN. */
export async function finishSignIn(context: SignInContext, answer: CeremonyAnswer): Promise<User | undefined> {
  const asked = await redeemOneTimeToken<{ challenge: string }>(context, 'passkey-sign-in', answer.challengeToken);
  const response = parseCredential<AuthenticationResponseJSON>(answer.credential);
  const passkey = asked && typeof response.id === 'string' ? await findPasskey(context.store, response.id) : undefined;
  if (asked === undefined || passkey === undefined) return undefined;
  const { rpID, origin } = relyingParty(context.baseUrl);
  const { verifyAuthenticationResponse } = await loadCeremonies();
  const verified = await verifyAuthenticationResponse({
    response,
    expectedChallenge: asked.challenge,
    expectedOrigin: origin,
    expectedRPID: rpID,
    credential: toCredential(passkey),
    requireUserVerification: true,
  }).catch(() => undefined);
  if (!verified?.verified) return undefined;
  // Read before the passkey is used: a change that ends the passkey meanwhile also ends this credential generation.
  const user = await findUserById(context.store, passkey.userId);
  const use = { id: passkey.id, counter: verified.authenticationInfo.newCounter, nowMs: context.world.nowMs() };
  if (user?.disabledAtMs !== null || !(await usePasskey(context.store, use))) return undefined;
  return user;
}

function toCredential({ id, publicKey, counter }: Passkey) {
  return { id, publicKey: Uint8Array.from(publicKey), counter };
}

function parseCredential<T>(text: string): T {
  const value = parseJson(text);
  if (typeof value === 'object' && value !== null && 'response' in value) return value as T;
  throw refuse();
}

function refuse(): Failure {
  return new Failure('invalid', 'The passkey was not accepted', { field: 'passkey' });
}

function refuseWith(cause: unknown): never {
  throw new Failure('invalid', 'The passkey was not accepted', { field: 'passkey' }, { cause });
}
