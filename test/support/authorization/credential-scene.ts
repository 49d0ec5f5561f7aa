/** Creates one person with one credential of each kind, on the real pages and endpoints, to test which events end which. */
import assert from 'node:assert/strict';
import { createSession } from '../../../src/authorization/accounts/session-store.ts';
import { createUser, findUserById, type User } from '../../../src/authorization/accounts/user-store.ts';
import { createPasswordLink } from '../../../src/authorization/password-links/password-link.ts';
import { hashPassword } from '../../../src/authorization/sign-in/password.ts';
import { createPersonalToken } from '../../../src/authorization/tokens/personal-token.ts';
import { createFormClient, type FormClient } from '../network/form-client.ts';
import {
  type AuthorizationServer,
  callApi,
  decide,
  type Fields,
  obtainCode,
  obtainTokens,
  postForm,
  readHidden,
  refresh,
  registerApplication,
  request,
  type SignedIn,
  signIn,
} from './authorization-server.ts';
import type { Bench } from './conformance.ts';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
/** The scope of the application's tokens. */
export const SCOPE = 'all_user all_hook';
export const OLD_PASSWORD = 'correct horse battery';

export const KINDS = [
  'code',
  'waitingDevice',
  'approvedDevice',
  'access',
  'refresh',
  'personal',
  'session',
  'passwordLink',
] as const;
export type Kind = (typeof KINDS)[number];

export interface CredentialScene {
  readonly bench: Bench;
  readonly person: SignedIn;
  /** Another browser of the person, from which the pages are used. */
  readonly browser: FormClient;
  readonly clientId: string;
  /** Tries the credential once, and returns whether it was accepted. */
  readonly attempts: Readonly<Record<Kind, () => Promise<boolean>>>;
}

let people = 0;

export async function prepareCredentials(bench: Bench): Promise<CredentialScene> {
  const { server } = bench;
  const { store, world } = server;
  const login = `holder${++people}`;
  const passwordHash = await hashPassword(OLD_PASSWORD);
  const profile = { login, name: 'Ada', email: null, isAdmin: false, passwordHash };
  const user = await createUser(store, world, profile);
  const person = { user, cookie: await signIn(server, user) };
  const application = await registerApplication(server, {
    grantTypes: ['authorization_code', 'refresh_token', 'device_code'],
  });
  const { clientId, clientSecret } = application;
  const client = { client_id: clientId, client_secret: clientSecret };
  const tokens = await obtainTokens(server, person, application, SCOPE);
  const spare = await obtainTokens(server, person, application, SCOPE);
  const approved = await startDevice(server, client);
  await approveDevice(server, person, approved.userCode);
  const waiting = await startDevice(server, client);
  const personal = { userId: user.id, name: 'ci', scopes: ['all_user'], expiresAtMs: undefined } as const;
  const { secret } = await createPersonalToken(store, world, personal);
  const link = await orderLink(server, user);
  const code = await obtainCode(server, person, { client_id: clientId, scope: SCOPE });
  const exchange = (fields: Fields) => postForm(`${server.url}/oauth/token`, { ...fields, ...client });
  return {
    bench,
    person,
    browser: await openBrowser(server, user.id),
    clientId,
    attempts: {
      code: async () => (await exchange({ grant_type: 'authorization_code', code })).status === 200,
      waitingDevice: async () => {
        const { json } = await exchange({ grant_type: DEVICE_GRANT, device_code: waiting.deviceCode });
        return json.error === 'authorization_pending';
      },
      approvedDevice: async () =>
        (await exchange({ grant_type: DEVICE_GRANT, device_code: approved.deviceCode })).status === 200,
      access: async () => (await callApi(server, tokens.access_token)) === 200,
      refresh: async () => (await refresh(server, spare.refresh_token)).status === 200,
      personal: async () => (await callApi(server, secret)) === 200,
      session: async () =>
        (await request(`${server.url}/account`, { headers: { cookie: person.cookie } })).status === 200,
      passwordLink: async () => (await request(link)).status === 200,
    },
  };
}

/** Returns the URL of a reset link, as an administrator would create it. */
async function orderLink({ url, store, world, cipher }: AuthorizationServer, user: User): Promise<string> {
  const link = createPasswordLink({ store, world, cipher, baseUrl: url }, user, { purpose: 'reset', mailedTo: null });
  await store.writeAll([link.statement]);
  return link.url;
}

async function startDevice(server: AuthorizationServer, client: Fields) {
  const { json } = await postForm(`${server.url}/oauth/device`, { ...client, scope: SCOPE });
  return { deviceCode: String(json.device_code), userCode: String(json.user_code) };
}

async function approveDevice(server: AuthorizationServer, { cookie }: SignedIn, userCode: string): Promise<void> {
  const page = await request(`${server.url}/device`, { headers: { cookie } });
  const fields = { csrf_token: readHidden(page.text, 'csrf_token'), user_code: userCode };
  const typed = await postForm(`${server.url}/device`, fields, { cookie, origin: server.url });
  const shown = await request(server.url + typed.headers.get('location'), { headers: { cookie } });
  const decided = await decide(server, cookie, { page: shown.text, decision: 'allow', path: '/device' });
  assert.equal(decided.headers.get('location'), '/device?done=approved');
}

/** Signs the person in to another browser. */
export async function openBrowser({ url, store, world }: AuthorizationServer, userId: string): Promise<FormClient> {
  const user = await findUserById(store, userId);
  assert.ok(user);
  const { token } = await createSession(store, world, { user, method: 'password', address: '-', userAgent: '' });
  return createFormClient(url, new Map([['trivet_session', token]]));
}
