/** Starts the authorization area on a real socket, with a given store and a clock that a test moves. */

import { createSession } from '../../../src/authorization/accounts/session-store.ts';
import { createUser, type User } from '../../../src/authorization/accounts/user-store.ts';
import { type CreatedApplication, createApplication } from '../../../src/authorization/applications/application.ts';
import type { ApplicationForm } from '../../../src/authorization/applications/application-form.ts';
import { type AuthorizationArea, createAuthorizationArea } from '../../../src/authorization/area.ts';
import { parseConfig } from '../../../src/config/config.ts';
import type { Store } from '../../../src/database/store.ts';
import { createSecretCipher, type SecretCipher } from '../../../src/encryption/secret-cipher.ts';
import { createHttpApp } from '../../../src/http/http-app.ts';
import { listenHttp } from '../../../src/http/http-server.ts';
import { createLog, type Log } from '../../../src/telemetry/log.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { realWorld, type World } from '../../../src/world.ts';

export interface AuthorizationServer {
  readonly url: string;
  readonly store: Store;
  readonly world: World;
  readonly cipher: SecretCipher;
  readonly area: AuthorizationArea;
  /** Everything the service logged. */
  readonly lines: readonly string[];
  /** Lets time pass. */
  advance(ms: number): void;
  /** Puts the machine's clock forward or back, while no time passes. */
  stepClock(ms: number): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What the functions below need, of a server in this process or of the real program on the same store. */
export type AuthorizationEndpoint = Pick<AuthorizationServer, 'url' | 'store' | 'world'>;

export interface ServerOptions {
  readonly environment?: Readonly<Record<string, string>>;
  /** Shares a clock between servers that stand for two processes. */
  readonly clock?: { offsetMs: number; stepMs: number };
  /** The common issuer of two processes; this server's own address if absent. */
  readonly issuer?: string;
  readonly log?: Log;
  /** Time passes only by `advance`, however slow the machine is. */
  readonly isStill?: boolean;
}

const TEST_KEY = new Uint8Array(32).fill(7);

export async function startAuthorizationServer(
  store: Store,
  options: ServerOptions = {},
): Promise<AuthorizationServer> {
  const clock = options.clock ?? { offsetMs: 0, stepMs: 0 };
  const [startMs, startMonotonicMs] = [Date.now(), performance.now()];
  const world: World = {
    ...realWorld,
    nowMs: () => (options.isStill ? startMs : Date.now()) + clock.offsetMs + clock.stepMs,
    monotonicMs: () => (options.isStill ? startMonotonicMs : performance.now()) + clock.offsetMs,
  };
  const lines: string[] = [];
  const log = options.log ?? createLog('info', { write: (line: string) => void lines.push(line) });
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  const cipher = createSecretCipher([TEST_KEY], world);
  const config = parseConfig(options.environment ?? {}).authorization;
  const authUrl = options.issuer ?? http.url;
  const metrics = createMetrics();
  const area = createAuthorizationArea({ store, world, log, metrics, cipher, config, baseUrl: authUrl, authUrl });
  const app = createHttpApp({
    mounts: area.routes,
    log,
    metrics,
    world,
    maxBodyBytes: 1_048_576,
    // Lets a test send requests from any address, by `X-Forwarded-For`.
    trustedProxies: ['127.0.0.1'],
    checkReady: async () => {},
  });
  http.serve(app);
  return {
    url: http.url,
    store,
    world,
    cipher,
    area,
    lines,
    advance: (ms) => {
      clock.offsetMs += ms;
    },
    stepClock: (ms) => {
      clock.stepMs += ms;
    },
    [Symbol.asyncDispose]: async () => {
      await http.drain(0);
    },
  };
}

/** A person, and the cookie of a browser in which this person is signed in. */
export interface SignedIn {
  readonly user: User;
  readonly cookie: string;
}

let people = 0;

export async function createPerson(server: AuthorizationEndpoint, login = `person${++people}`): Promise<SignedIn> {
  const { store, world } = server;
  const user = await createUser(store, world, {
    login,
    name: `Person ${login}`,
    email: `${login}@example.com`,
    isEmailVerified: true,
    isAdmin: false,
    passwordHash: null,
  });
  return { user, cookie: await signIn(server, user) };
}

export async function signIn({ store, world }: AuthorizationEndpoint, user: User): Promise<string> {
  const session = { user, method: 'password' as const, address: '127.0.0.1', userAgent: 'test' };
  const { token } = await createSession(store, world, session);
  return `trivet_session=${token}`;
}

export const CALLBACK = 'https://client.example/callback';

export async function registerApplication(
  { store, world }: AuthorizationEndpoint,
  form: Partial<ApplicationForm> = {},
  userId?: string,
): Promise<CreatedApplication & { readonly clientId: string; readonly clientSecret: string }> {
  const created = await createApplication(store, world, {
    form: {
      name: 'Example',
      homepage: 'https://client.example',
      description: '',
      redirectUris: [CALLBACK],
      isPublic: false,
      ...form,
    },
    actor: { userId },
  });
  return {
    ...created,
    clientId: created.application.clientId,
    clientSecret: created.clientSecret ?? '',
  };
}

/** A response as a browser or a client gets it; redirects are not followed. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; throws for any other body. */
  readonly json: Readonly<Record<string, unknown>>;
}

export async function request(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, { redirect: 'manual', ...init });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    get json() {
      return JSON.parse(text) as Record<string, unknown>;
    },
  };
}

export type Fields = Readonly<Record<string, string>>;

export function postForm(url: string, fields: Fields | URLSearchParams, headers: Fields = {}): Promise<Answer> {
  return request(url, { method: 'POST', body: new URLSearchParams(fields), headers });
}

/** Posts a form of a page; when it is refused, returns the page that the refusal leads to. */
export async function postPageForm(
  { url }: Pick<AuthorizationEndpoint, 'url'>,
  path: string,
  { fields, headers = {} }: { readonly fields: Fields | URLSearchParams; readonly headers?: Fields },
): Promise<Answer> {
  const answer = await postForm(url + path, fields, headers);
  const location = answer.headers.get('location') ?? '';
  if (answer.status !== 303 || !/[?&]refused=/.test(location)) return answer;
  const set = answer.headers.getSetCookie().map((line) => line.split(';')[0]);
  const cookie = [headers.cookie, ...set].filter((part) => part !== undefined).join('; ');
  return request(url + location, { headers: { cookie } });
}

export function basic(clientId: string, secret: string): Fields {
  return { authorization: `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}` };
}

/** The page of an authorization request, in a signed-in browser. */
export function authorize(server: AuthorizationEndpoint, cookie: string, fields: Fields): Promise<Answer> {
  return request(`${server.url}/oauth/authorize?${new URLSearchParams(fields).toString()}`, { headers: { cookie } });
}

export function readHidden(page: string, name: string): string {
  const input = new RegExp(`<input[^>]*name="${name}"[^>]*>`).exec(page)?.[0] ?? '';
  return /value="([^"]*)"/.exec(input)?.[1] ?? '';
}

/** Presses a button of the consent page. */
export function decide(
  server: AuthorizationEndpoint,
  cookie: string,
  { page, decision, path = '/oauth/authorize' }: { page: string; decision: 'allow' | 'deny'; path?: string },
): Promise<Answer> {
  const fields = { csrf_token: readHidden(page, 'csrf_token'), request: readHidden(page, 'request'), decision };
  return postPageForm(server, path, { fields, headers: { cookie, origin: server.url } });
}

/** The parameters of the redirect to the client. */
export function readRedirect(answer: Answer): URLSearchParams {
  return new URL(answer.headers.get('location') ?? 'http://none.invalid').searchParams;
}

/** Obtains a code: sends the request, allows it on the consent page if there is one, and takes the code from the redirect. */
export async function obtainCode(
  server: AuthorizationEndpoint,
  { cookie }: SignedIn,
  fields: Fields & { readonly client_id: string },
): Promise<string> {
  const query = { response_type: 'code', redirect_uri: CALLBACK, ...fields };
  const asked = await authorize(server, cookie, query);
  const answer = asked.status === 302 ? asked : await decide(server, cookie, { page: asked.text, decision: 'allow' });
  const code = readRedirect(answer).get('code');
  if (code === null) throw new Error(`No code: ${answer.status} ${answer.headers.get('location')} ${answer.text}`);
  return code;
}

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly scope: string;
  readonly expires_in: number;
  readonly created_at: string;
}

/** Tokens of a person for a confidential application. */
export async function obtainTokens(
  server: AuthorizationEndpoint,
  person: SignedIn,
  application: { readonly clientId: string; readonly clientSecret: string },
  scope = 'all_user all_hook',
): Promise<Tokens> {
  const { clientId, clientSecret } = application;
  const code = await obtainCode(server, person, { client_id: clientId, scope });
  const answer = await postForm(`${server.url}/oauth/token`, {
    grant_type: 'authorization_code',
    code,
    client_id: clientId,
    client_secret: clientSecret,
  });
  if (answer.status !== 200) throw new Error(`No tokens: ${answer.status} ${answer.text}`);
  return answer.json as unknown as Tokens;
}

export async function refresh(
  server: AuthorizationEndpoint,
  refreshToken: string,
  fields: Fields = {},
): Promise<Answer> {
  return postForm(`${server.url}/oauth/token`, { grant_type: 'refresh_token', refresh_token: refreshToken, ...fields });
}

/** The status of `GET /api/v5/user` with this token. */
export async function callApi(server: AuthorizationEndpoint, token: string): Promise<number> {
  const answer = await request(`${server.url}/api/v5/user`, { headers: { authorization: `Bearer ${token}` } });
  return answer.status;
}
