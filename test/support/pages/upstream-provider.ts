/** An OpenID provider of another implementation, beside the pages whose people sign in there. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import Provider, { type Configuration } from 'oidc-provider';
import { createFormClient, type FormClient } from '../network/form-client.ts';
import { type PageService, type PageServiceOptions, servePages } from './page-service.ts';

const SECURITY = '/account/security';
const SECRET = 'a secret that only the two of us know';

interface Upstream {
  readonly issuer: string;
  /** The service that is its client; the provider must know its address first. */
  readonly allow: (redirectUri: string) => void;
}

/** An independent implementation as the provider; its own pages let anybody in under any name. */
async function startProvider(t: TestContext, changes: Configuration = {}): Promise<Upstream> {
  let provider: Provider | undefined;
  const server = createServer((request, response) => void provider?.callback()(request, response));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  t.after(() => void server.close());
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const allow = (redirectUri: string) => {
    const configuration: Configuration = {
      clients: [{ client_id: 'trivet', client_secret: SECRET, redirect_uris: [redirectUri] }],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'preferred_username'] },
      findAccount: (_, id) => ({ accountId: id, claims: (use) => describeAccount(id, use) }),
      ...changes,
    };
    provider = new Provider(issuer, configuration);
    provider.on('server_error', (_, error) => console.error(error));
  };
  return { issuer, allow };
}

/** The userinfo of a person whose name begins with `unreadable` fails. */
function describeAccount(id: string, use: string) {
  if (use === 'userinfo' && id.startsWith('unreadable')) throw new Error('The directory does not answer');
  const email = `${id}@company.example`;
  const name = /[a-z]/.test(id) ? `${id} of the company` : id;
  return { sub: id, name, preferred_username: id, email, email_verified: id !== 'unverified' };
}

/** The pages with such a provider, until the test ends. */
export async function startWithProvider(
  t: TestContext,
  signUp: 'open' | 'closed',
  { provider, ...options }: Omit<PageServiceOptions, 'upstream'> & { readonly provider?: Configuration } = {},
): Promise<PageService> {
  const { issuer, allow } = await startProvider(t, provider);
  const upstream = { name: 'Company', issuer, clientId: 'trivet', clientSecret: SECRET, scope: 'openid profile email' };
  const service = await servePages(t, { ...options, upstream: { ...upstream, signUp } });
  allow(`${service.url}/sign-in/upstream/callback`);
  return service;
}

/**
 * Goes through the provider's own pages as `login`, from its address to the way back; returns that path. With the same `browser`
 * again, the provider knows its person and asks nothing.
 */
export async function passProvider(
  startUrl: string,
  login: string,
  browser = new Map<string, string>(),
): Promise<string> {
  const { origin } = new URL(startUrl);
  const client = createFormClient(origin, browser);
  let next = startUrl;
  for (let hop = 0; hop < 12; hop += 1) {
    if (!next.startsWith(origin) && !next.startsWith('/')) return next;
    const path = next.startsWith('/') ? next : next.slice(origin.length);
    const page = await client.get(path);
    next = page.location ?? (await answerProvider(client, page.body, login));
  }
  throw new Error(`The provider leads nowhere, last to ${next}`);
}

async function answerProvider(client: FormClient, body: string, login: string): Promise<string> {
  const action = /<form[^>]* action="([^"]+)"/.exec(body)?.[1] ?? '';
  const prompt = /name="prompt" value="([^"]+)"/.exec(body)?.[1] ?? '';
  const { location } = await client.post(new URL(action, 'http://x').pathname, { prompt, login, password: 'x' });
  return location ?? '';
}

/** Signs in at the provider, from a page of the service to the way back. */
export async function visitProvider(
  service: PageService,
  client: FormClient,
  login: string,
  page = '/sign-in/upstream',
) {
  const begun = await client.get(page);
  assert.equal(begun.status, 303, begun.body);
  const back = await passProvider(begun.location!, login);
  assert.ok(back.startsWith(service.url), back);
  return { back: back.slice(service.url.length), answer: await client.get(back.slice(service.url.length)) };
}

/** Links the account as the person who is signed in. */
export async function linkAccount(service: PageService, client: FormClient, login: string) {
  const url = await beginLink(client);
  return client.get((await passProvider(url, login)).slice(service.url.length));
}

/** The address of the provider to which the form of a signed-in person leads. */
export async function beginLink(client: FormClient): Promise<string> {
  const posted = await client.submit(SECURITY, `${SECURITY}/upstream/link`, {});
  assert.deepEqual([posted.status, posted.body], [303, ''], 'no page answers a form');
  const begun = await client.get(posted.location ?? '');
  return /http-equiv="refresh" content="0;url=([^"]+)"/.exec(begun.body)?.[1]?.replaceAll('&amp;', '&') ?? '';
}
