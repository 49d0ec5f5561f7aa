/**
 * Connects to the upstream OpenID provider as its client: code flow, PKCE, state, nonce. An upstream account signs in a person here
 * only by its stored link, never by email: the address may not belong to the account.
 */
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  discovery,
  fetchUserInfo,
} from 'openid-client';
import { Failure } from '../../errors.ts';
import type { World } from '../../world.ts';
import { isEmail } from '../accounts/email-store.ts';

export interface UpstreamConfig {
  /** The name of the provider on pages. */
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  readonly scope: string;
  /** Whether an upstream account that is not linked yet creates an account here. */
  readonly signUp: 'open' | 'closed';
}

/** The state of a sign-in that the provider's answer must match. */
export interface UpstreamProof {
  readonly codeVerifier: string;
  readonly nonce: string;
  /** The sign-in at the provider must be later than this time; undefined if an earlier one is enough. */
  readonly freshSinceMs?: number | undefined;
}

/** A person whom the provider has authenticated. */
export interface AuthenticatedPerson {
  readonly subject: string;
  /** When the person signed in at the provider (`auth_time`); undefined if the provider does not report it. */
  readonly authTimeMs: number | undefined;
  /** Requests from the provider what the identity token leaves out, which may take 10 s. Never throws. */
  readProfile(): Promise<UpstreamPerson>;
}

/** The person as the provider describes them. */
export interface UpstreamPerson {
  readonly subject: string;
  readonly login: string | undefined;
  readonly name: string | undefined;
  /** The address, if the provider has verified it. */
  readonly email: string | undefined;
  /** Why the userinfo of the provider could not be read; then the other fields have only what the identity token has. */
  readonly profileError?: unknown;
}

export interface UpstreamProvider {
  readonly config: UpstreamConfig;
  /** `isFresh`: the provider must ask the person to sign in even if they are signed in there. */
  createProof(world: World, isFresh: boolean): UpstreamProof;
  /** Returns the URL to which the browser is sent. Throws `unavailable` if the provider does not answer. */
  createAuthorizationUrl(proof: UpstreamProof, request: { redirectUri: string; state: string }): Promise<URL>;
  /** Throws `forbidden` for an answer that is not valid. */
  authenticate(proof: UpstreamProof, answer: { url: URL; state: string }): Promise<AuthenticatedPerson>;
}

/**
 * The `max_age` of every request, with which the identity token has `auth_time` (OpenID Connect Core §2). A session ends 14 days
 * after that time, so with 13 days it lasts for at least a day.
 */
const MAX_AUTH_AGE_MS = 13 * 86_400_000;

export function createUpstreamProvider(config: UpstreamConfig): UpstreamProvider {
  const configure = createDiscovery(config);
  return {
    config,
    createProof: (world, isFresh) => ({
      codeVerifier: randomText(world),
      nonce: randomText(world),
      freshSinceMs: isFresh ? world.nowMs() : undefined,
    }),
    async createAuthorizationUrl(proof, { redirectUri, state }) {
      return buildAuthorizationUrl(await configure(), {
        redirect_uri: redirectUri,
        scope: config.scope,
        state,
        nonce: proof.nonce,
        code_challenge: await calculatePKCECodeChallenge(proof.codeVerifier),
        code_challenge_method: 'S256',
        ...(proof.freshSinceMs === undefined
          ? { max_age: String(MAX_AUTH_AGE_MS / 1000) }
          : { max_age: '0', prompt: 'login' }),
      });
    },
    async authenticate(proof, { url, state }) {
      const configuration = await configure();
      try {
        const tokens = await authorizationCodeGrant(configuration, url, {
          pkceCodeVerifier: proof.codeVerifier,
          expectedNonce: proof.nonce,
          expectedState: state,
          idTokenExpected: true,
        });
        const claims = tokens.claims() ?? {};
        const person = toPerson(claims);
        const readProfile = () => completePerson(configuration, person, tokens.access_token);
        return { subject: person.subject, authTimeMs: readAuthTime(claims), readProfile };
      } catch (cause) {
        throw new Failure('forbidden', `${config.name} did not let you in`, {}, { cause });
      }
    },
  };
}

function randomText(world: World): string {
  return Buffer.from(world.randomBytes(32)).toString('base64url');
}

/** Fetches the provider's metadata when it is first needed, and again after a failure. */
function createDiscovery(config: UpstreamConfig): () => Promise<Configuration> {
  const isPlain = config.issuer.startsWith('http:');
  let known: Promise<Configuration> | undefined;
  return async () => {
    known ??= discovery(new URL(config.issuer), config.clientId, config.clientSecret, undefined, {
      timeout: 10,
      ...(isPlain ? { execute: [allowInsecureRequests] } : {}),
    });
    try {
      return await known;
    } catch (cause) {
      known = undefined;
      throw new Failure('unavailable', `${config.name} does not answer at the moment`, {}, { cause });
    }
  };
}

/**
 * Fills in what the identity token leaves out: in the code flow, a provider answers `profile` and `email` at its userinfo
 * endpoint (OpenID Connect Core §5.4). An address counts only with `email_verified` from the same source. A failure does not keep
 * out a person who has an account here.
 */
async function completePerson(
  configuration: Configuration,
  person: UpstreamPerson,
  accessToken: string,
): Promise<UpstreamPerson> {
  const { subject, login, name, email } = person;
  const isComplete = login !== undefined && name !== undefined && email !== undefined;
  if (isComplete || configuration.serverMetadata().userinfo_endpoint === undefined) return person;
  try {
    const profile = toPerson(await fetchUserInfo(configuration, accessToken, subject));
    return { subject, login: login ?? profile.login, name: name ?? profile.name, email: email ?? profile.email };
  } catch (profileError) {
    return { ...person, profileError };
  }
}

/**
 * Returns when the person signed in at the provider. If the provider does not report it, although the request had `max_age`, the
 * time is now: otherwise no one could sign in again there. A time before `MAX_AUTH_AGE_MS` is raised to that: with an older time,
 * the session would end at once.
 */
export function computeAuthTime(world: World, { authTimeMs }: AuthenticatedPerson): number {
  const nowMs = world.nowMs();
  return Math.min(Math.max(authTimeMs ?? nowMs, nowMs - MAX_AUTH_AGE_MS), nowMs);
}

function readAuthTime({ auth_time: seconds }: Readonly<Record<string, unknown>>): number | undefined {
  return typeof seconds === 'number' ? seconds * 1000 : undefined;
}

function toPerson(claims: Readonly<Record<string, unknown>>): UpstreamPerson {
  const text = (name: string) => (typeof claims[name] === 'string' && claims[name] !== '' ? claims[name] : undefined);
  const subject = text('sub');
  if (subject === undefined) throw new Failure('forbidden', 'The provider sent no subject');
  const email = text('email');
  return {
    subject,
    login: text('preferred_username') ?? text('nickname'),
    name: text('name'),
    // An address that the profile page would refuse is ignored, even if the provider has verified it.
    email: email !== undefined && claims.email_verified === true && isEmail(email) ? email : undefined,
  };
}
