/**
 * Checks an authorization request: client and redirect URI first, then everything else (RFC 6749 §4.1.1). A refusal of the first
 * step is shown to the person and never redirected (§4.1.2.1). A refusal of the second is redirected to the client once the person
 * has signed in (authorize.ts, `refuseRequest`).
 */
import { Failure } from '../../errors.ts';
import type { Application } from '../applications/application-store.ts';
import { isRegisteredRedirectUri } from '../applications/redirect-uri.ts';
import { DEFAULT_SCOPE, readRequestedScopes, type Scope } from '../applications/scope.ts';
import { createOAuthFailure, refuseRepeatedParameter, refuseUnknownScopes } from './protocol/oauth-error.ts';
import { isCodeChallenge } from './protocol/pkce.ts';

export const AUTHORIZE_PATH = '/oauth/authorize';

/** The query parameter that carries the mark to the sign-in and back (prompt-login-mark.ts); not a parameter of the client. */
export const MARK_PARAMETER = 'again';

/** The names of all parameters that are read. */
const NAMES = [
  'client_id',
  'redirect_uri',
  'response_type',
  'response_mode',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
  'nonce',
  'prompt',
  'max_age',
  'login_hint',
  'id_token_hint',
  'request',
  'request_uri',
  MARK_PARAMETER,
] as const;

type ParameterName = (typeof NAMES)[number];

type ParameterValues = ReadonlyMap<ParameterName, string>;

export interface AuthorizeQuery {
  /** All parameters in the order of the request, with unknown names, but without empty values. */
  readonly pairs: readonly (readonly [string, string])[];
  readonly values: ParameterValues;
  /** Known names that were sent more than once. */
  readonly repeated: ReadonlySet<ParameterName>;
}

export type Prompt = 'none' | 'login' | 'consent' | 'select_account';

export interface AuthorizationRequest {
  readonly clientId: string;
  readonly redirectUri: string;
  readonly state: string | undefined;
  readonly scopes: readonly Scope[];
  readonly codeChallenge: string | undefined;
  readonly nonce: string | undefined;
  readonly prompts: readonly Prompt[];
  readonly maxAgeSeconds: number | undefined;
  readonly loginHint: string | undefined;
}

const PROMPTS: readonly string[] = ['none', 'login', 'consent', 'select_account'] satisfies Prompt[];

const KNOWN: ReadonlySet<string> = new Set(NAMES);

function isKnown(name: string): name is ParameterName {
  return KNOWN.has(name);
}

/** An empty value counts as absent; unknown names are ignored, even if repeated (RFC 6749 §3.1). */
export function parseAuthorizeQuery(pairs: Iterable<readonly [string, string]>): AuthorizeQuery {
  const given = [...pairs].filter(([, value]) => value !== '');
  const values = new Map<ParameterName, string>();
  const repeated = new Set<ParameterName>();
  for (const [name, value] of given) {
    if (!isKnown(name)) continue;
    if (values.has(name)) repeated.add(name);
    values.set(name, value);
  }
  return { pairs: given, values, repeated };
}

/** The request as a path of this service, to come back to after signing in. */
export function formatRequestPath({ pairs }: AuthorizeQuery, changes: Readonly<Record<string, string>> = {}): string {
  const parameters = new URLSearchParams(pairs.filter(([name]) => name !== MARK_PARAMETER).map(([...pair]) => pair));
  for (const [name, value] of Object.entries(changes)) parameters.set(name, value);
  return `${AUTHORIZE_PATH}?${parameters.toString()}`;
}

/** Longest request path, URL-encoded, that fits in the sign-in URL; Node limits the request head to 16 KB. */
const MAX_CARRIED_LENGTH = 11_000;
/** The longest state that fits in the consent form, as JSON, where a control character takes six bytes. */
const MAX_STATE_BYTES = 8192;

/** Throws unless sign-in and consent can carry the request: with a truncated state, the client would suspect CSRF. */
export function checkRequestSize(query: AuthorizeQuery): void {
  const stateBytes = Buffer.byteLength(JSON.stringify(query.values.get('state') ?? ''));
  if (stateBytes <= MAX_STATE_BYTES && encodeURIComponent(formatRequestPath(query)).length <= MAX_CARRIED_LENGTH)
    return;
  throw createOAuthFailure('invalid_request', 'The request is too long: its state must be shorter');
}

const MAX_SHOWN_LENGTH = 300;

/** Returns the client id. Throws an error that the person sees and that is not redirected. */
export function readClientId({ values, repeated }: AuthorizeQuery): string {
  const clientId = values.get('client_id');
  if (clientId === undefined || repeated.has('client_id') || hasControl(clientId)) throw refuseApplication();
  return clientId;
}

/** Throws an error that the person sees and that is not redirected, if the application does not exist or is disabled. */
export function requireApplication(application: Application | undefined): Application {
  if (application === undefined || application.disabledAtMs !== undefined) throw refuseApplication();
  return application;
}

/** Returns the redirect URI. Throws an error that the person sees: only registered addresses are redirected to. */
export function readRedirectUri(query: AuthorizeQuery, application: Application): string {
  const redirectUri = query.values.get('redirect_uri');
  if (redirectUri === undefined)
    throw new Failure('invalid', 'The application did not name the address to return to: redirect_uri is missing');
  if (query.repeated.has('redirect_uri')) throw refuseRedirectUri(application, redirectUri);
  checkRedirectUri(redirectUri, application);
  return redirectUri;
}

/** Throws an error that the person sees, unless the address is registered now: the application may have changed meanwhile. */
export function checkRedirectUri(redirectUri: string, application: Application): void {
  if (!isRegisteredRedirectUri(redirectUri, application.redirectUris))
    throw refuseRedirectUri(application, redirectUri);
}

/** The message shows the address, so that a developer can compare it with the registered ones, but repeats no other text. */
function refuseRedirectUri({ name }: Application, redirectUri: string): Failure {
  if (!URL.canParse(redirectUri))
    return new Failure(
      'invalid',
      `The address to return to is not registered for "${name}", and is not an absolute URI`,
    );
  const shown = redirectUri.slice(0, MAX_SHOWN_LENGTH);
  return new Failure(
    'invalid',
    `The address to return to is not registered for "${name}": it must be one of the redirect addresses of the application, letter for letter, got "${shown}"`,
  );
}

function refuseApplication(): Failure {
  return new Failure('invalid', 'No application is known under this client_id');
}

/** Throws only errors that the client may learn (RFC 6749 §4.1.2.1). */
export function parseAuthorizationRequest(
  query: AuthorizeQuery,
  application: Application,
  redirectUri: string,
): AuthorizationRequest {
  const { values, repeated } = query;
  const [repeatedName] = repeated;
  if (repeatedName !== undefined) throw refuseRepeatedParameter(repeatedName);
  checkResponseType(values);
  if (!application.grantTypes.includes('authorization_code'))
    throw createOAuthFailure('unauthorized_client', 'This client may not use the authorization code grant');
  const nonce = values.get('nonce');
  if (nonce !== undefined && (hasControl(nonce) || nonce.length > 1024))
    throw createOAuthFailure('invalid_request', 'The nonce has control characters or more than 1024 characters');
  return {
    clientId: application.clientId,
    redirectUri,
    state: values.get('state'),
    scopes: readScopes(values.get('scope')),
    codeChallenge: readChallenge(values, application),
    nonce,
    prompts: readPrompts(values.get('prompt')),
    maxAgeSeconds: readMaxAge(values.get('max_age')),
    loginHint: values.get('login_hint'),
  };
}

function checkResponseType(values: ParameterValues): void {
  const responseType = values.get('response_type');
  if (responseType === undefined) throw createOAuthFailure('invalid_request', 'response_type is missing');
  if (responseType !== 'code') throw createOAuthFailure('unsupported_response_type', 'response_type must be code');
  if ((values.get('response_mode') ?? 'query') !== 'query')
    throw createOAuthFailure('invalid_request', 'response_mode must be query');
  if (values.has('request')) throw createOAuthFailure('request_not_supported', 'request is not supported');
  if (values.has('request_uri')) throw createOAuthFailure('request_uri_not_supported', 'request_uri is not supported');
}

function readScopes(text: string | undefined): readonly Scope[] {
  if (text === undefined) return DEFAULT_SCOPE;
  const scopes = readRequestedScopes(text);
  if (scopes.length === 0) throw refuseUnknownScopes();
  return scopes;
}

/** Reads the PKCE challenge (RFC 7636 §4.3, §4.4.1). Without a method it would be `plain`, which is refused. */
function readChallenge(values: ParameterValues, { isPublic }: Application): string | undefined {
  const challenge = values.get('code_challenge');
  const method = values.get('code_challenge_method');
  if (challenge === undefined) {
    if (method !== undefined) throw createOAuthFailure('invalid_request', 'code_challenge is missing');
    if (isPublic) throw createOAuthFailure('invalid_request', 'code_challenge is required: this client has no secret');
    return undefined;
  }
  if (method !== 'S256') throw createOAuthFailure('invalid_request', 'code_challenge_method must be S256');
  if (!isCodeChallenge(challenge))
    throw createOAuthFailure(
      'invalid_request',
      'code_challenge must be the SHA-256 of code_verifier, as 43 characters of base64url',
    );
  return challenge;
}

function readPrompts(text: string | undefined): readonly Prompt[] {
  const names = (text ?? '').split(' ').filter((name): name is Prompt => PROMPTS.includes(name));
  if (names.includes('none') && names.length > 1)
    throw createOAuthFailure('invalid_request', 'prompt=none cannot be combined with other values');
  return names;
}

function readMaxAge(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) throw createOAuthFailure('invalid_request', 'max_age must be a number of seconds');
  return Number(text);
}

function hasControl(text: string): boolean {
  return /\p{Cc}/u.test(text) || !text.isWellFormed();
}
