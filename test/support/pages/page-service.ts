/** The pages on a real port over a real store, for browsers and for plain requests. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { html } from 'hono/html';
import { createPages } from '../../../src/authorization/account-pages/pages.ts';
import { createSessionGuard } from '../../../src/authorization/account-pages/session-guard.ts';
import { createUser, type User } from '../../../src/authorization/accounts/user-store.ts';
import { createPasswordLinkRoutes } from '../../../src/authorization/password-links/password-link-routes.ts';
import { addPeopleRoutes } from '../../../src/authorization/people-pages/people-routes.ts';
import { hashPassword } from '../../../src/authorization/sign-in/password.ts';
import { createSignIn, type SignIn } from '../../../src/authorization/sign-in/sign-in.ts';
import type { Session } from '../../../src/authorization/sign-in/sign-in-context.ts';
import type { UpstreamConfig } from '../../../src/authorization/sign-in/upstream.ts';
import type { Store } from '../../../src/database/store.ts';
import { createSecretCipher, type SecretCipher } from '../../../src/encryption/secret-cipher.ts';
import { createHttpApp } from '../../../src/http/http-app.ts';
import { listenHttp } from '../../../src/http/http-server.ts';
import { createMailer } from '../../../src/mail/mailer.ts';
import { createPageRoutes } from '../../../src/pages/page-routes.ts';
import { createSignedInPages, type SessionGuard } from '../../../src/pages/signed-in-pages.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import type { World } from '../../../src/world.ts';
import { createStillWorld, type StillWorld } from '../basics/still-world.ts';
import { createFormClient, type FormClient } from '../network/form-client.ts';
import { createMigratedPlace, openTestStore, readServiceEngine } from '../store/engines.ts';

export interface PageService {
  readonly url: string;
  readonly store: Store;
  readonly world: StillWorld;
  readonly cipher: SecretCipher;
  readonly signIn: SignIn;
  /** Returns the log so far. */
  readonly log: () => string;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface PageServiceOptions {
  /** Under which name browsers come; passkeys need one. */
  readonly hostname?: string;
  /** What clients see instead, to test what https changes. */
  readonly baseUrl?: string;
  readonly upstream?: UpstreamConfig;
  /** Mails then wait in the store. */
  readonly withMail?: true;
  /** Wraps the store that the pages use, so that a test lets other changes commit between two of its steps. */
  readonly wrapStore?: (store: Store) => Store;
}

export const PASSWORD = 'correct horse battery';

/** A service without accounts. */
export async function startPageService({
  hostname = '127.0.0.1',
  baseUrl,
  upstream,
  withMail,
  wrapStore = (store) => store,
}: PageServiceOptions = {}): Promise<PageService> {
  await using undo = new AsyncDisposableStack();
  const place = undo.use(await createMigratedPlace(readServiceEngine()));
  const world = createStillWorld(Date.now());
  const store = undo.use(await openTestStore(place));
  const wrapped = wrapStore(store);
  const server = await listenHttp({ host: '127.0.0.1', port: 0 });
  undo.defer(() => server.drain(0));
  const url = `http://${hostname}:${server.port}`;
  const cipher = createSecretCipher([new Uint8Array(32).fill(1)], world);
  const signIn = createSignIn({
    store: wrapped,
    world,
    cipher,
    countToken: () => {},
    baseUrl: baseUrl ?? url,
    upstream,
    mailer: withMail && createMailer({ cipher, world }),
  });
  const guard = createSessionGuard(signIn.context);
  const lines: string[] = [];
  const app = createHttpApp({
    mounts: [
      signIn.routes,
      createHome(guard),
      createPages(signIn.context, guard, [addPeopleRoutes]),
      createPasswordLinkRoutes(signIn.context),
    ].map((routes) => ({ path: '/', errors: 'page', routes, respondPage: signIn.context.respondRefusal }) as const),
    log: createLog('trace', { write: (line) => void lines.push(line) }),
    metrics: createMetrics(),
    world,
    maxBodyBytes: 1_000_000,
    checkReady: () => Promise.resolve(),
  });
  server.serve(app);
  const kept = undo.move();
  return {
    url,
    store,
    world,
    cipher,
    signIn,
    log: () => lines.join(''),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** The first page belongs to the console, which is not served here. */
function createHome(guard: SessionGuard<Session>) {
  const routes = createPageRoutes(guard.respondRefusal);
  createSignedInPages(routes, guard).page('/', ({ show }) =>
    show({ title: 'Home', here: '/', content: html`<h1>Home</h1>` }),
  );
  return routes;
}

/** The same until the test ends. */
export async function servePages(t: TestContext, options?: PageServiceOptions): Promise<PageService> {
  const service = await startPageService(options);
  t.after(() => service[Symbol.asyncDispose]());
  return service;
}

export function submitSignIn(client: FormClient, login: string, password = PASSWORD, page = '/sign-in') {
  return client.submit(page, '/sign-in', { login, password });
}

/** A browser in which this person is signed in. */
export async function openAs(service: PageService, login: string): Promise<FormClient> {
  const client = createFormClient(service.url);
  assert.equal((await submitSignIn(client, login)).location, '/');
  return client;
}

export async function addUser(
  { store, world }: { readonly store: Store; readonly world: World },
  login: string,
  isAdmin = false,
): Promise<User> {
  const name = `${login.charAt(0).toUpperCase()}${login.slice(1)} Lovelace`;
  const passwordHash = await hashPassword(PASSWORD);
  return createUser(store, world, { login, name, email: `${login}@example.org`, isAdmin, passwordHash });
}
