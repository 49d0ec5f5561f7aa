import assert from 'node:assert/strict';
import type { Store } from '../../../src/database/store.ts';
import { createSecretCipher } from '../../../src/encryption/secret-cipher.ts';
import { Failure } from '../../../src/errors.ts';
import { type BodyBudget, createBodyBudget } from '../../../src/http/body/body-budget.ts';
import { createHttpApp } from '../../../src/http/http-app.ts';
import { type HttpServer, listenHttp } from '../../../src/http/http-server.ts';
import { createRoutes } from '../../../src/http/routes.ts';
import type { IdentityEnv, RequireScope } from '../../../src/http/scope-middleware.ts';
import type { Identity, Owner, Owners } from '../../../src/identity.ts';
import { mountOperations } from '../../../src/operations/operation-routes.ts';
import { permits } from '../../../src/scopes.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { createAddressGuard } from '../../../src/webhooks/addresses/address-guard.ts';
import { implementWebhooks } from '../../../src/webhooks/administration/implement-webhooks.ts';
import { createBridgeRoutes } from '../../../src/webhooks/api/bridge-secret-routes.ts';
import { createDeliveryRoutes } from '../../../src/webhooks/api/delivery-routes.ts';
import { createEventRoutes } from '../../../src/webhooks/api/event-routes.ts';
import { createHookRoutes } from '../../../src/webhooks/api/hook-routes.ts';
import { createRepositoryRoutes } from '../../../src/webhooks/api/repository-routes.ts';
import { type ConsoleHooks, createConsoleHooks } from '../../../src/webhooks/management/console-hooks.ts';
import {
  createManagement,
  type Management,
  type SendingDependencies,
} from '../../../src/webhooks/management/management.ts';
import { realWorld, type World } from '../../../src/world.ts';
import { auditChange } from '../basics/audited-changes.ts';
import { forEachEngine } from '../store/engines.ts';

/**
 * The management routes over a real socket and a real store. Only the identity of the caller is made up here: the token is
 * `<login>` or `<login>:<scope>,<scope>`; a login that starts with `org-` is an organization owned by `grace`.
 */
export interface ManagementServer {
  readonly url: string;
  readonly management: Management;
  /** The functions that the console gets. */
  readonly admin: ConsoleHooks;
  /** Ids of the deliveries that were attempted for the tests endpoint. */
  readonly attempts: number[];
  /** `path` is below `/api/v5` unless it begins with `/api/`. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface CallOptions {
  readonly token?: string | undefined;
  readonly json?: unknown;
  readonly form?: Record<string, string>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into any answer
  readonly body: any;
}

const ALL_SCOPES = ['all_hook', 'all_projects', 'all_user'];

const requireScope: RequireScope = (scope) => async (c, next) => {
  const token = c.req.header('authorization')?.replace('Bearer ', '') ?? c.req.query('access_token');
  if (token === undefined) throw new Failure('unauthenticated', '401, token not found');
  const [login = '', scopes] = token.split(':');
  const identity: Identity = {
    userId: `id-${login}`,
    login,
    isAdmin: login === 'admin',
    scopes: scopes === undefined ? ALL_SCOPES : scopes.split(','),
    tokenKind: 'personal',
  };
  if (!permits(identity, scope)) throw new Failure('forbidden', `Forbidden: the token lacks ${scope}`);
  c.set('identity', identity);
  await next();
};

const owners: Owners = {
  findOwner: async (login) => (/^(grace|linus|org-\w+)$/i.test(login) ? toOwner(login.toLowerCase()) : undefined),
  canAdminister: async (identity, owner) =>
    identity.isAdmin ||
    identity.userId === owner.id ||
    (owner.kind === 'organization' && identity.userId === 'id-grace'),
  listAdministered: async ({ login }) => (login === 'grace' ? ['grace', 'org-sea'] : [login]).map(toOwner),
};

function toOwner(login: string): Owner {
  return { kind: login.startsWith('org-') ? 'organization' : 'user', id: `id-${login}`, login, name: login };
}

export interface ManagementOptions {
  /** Sends deliveries as a worker does; without it, nothing is sent. */
  readonly manual?: SendingDependencies['manual'];
  readonly bodyBudget?: BodyBudget;
  readonly takeCommitted?: Parameters<typeof createManagement>[0]['takeCommitted'];
  readonly noticeRepository?: string;
  readonly repositoriesPerOwner?: number;
}

export async function startManagement(
  store: Store,
  world: World = realWorld,
  options: ManagementOptions = {},
): Promise<ManagementServer> {
  const { manual, bodyBudget = createBodyBudget(), takeCommitted = () => {}, noticeRepository } = options;
  const { repositoriesPerOwner = 1000 } = options;
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  const attempts: number[] = [];
  const management = createManagement({
    store,
    world,
    log: createLog('silent'),
    cipher: createSecretCipher([Buffer.alloc(32, 7)], realWorld),
    owners,
    auditChange,
    baseUrl: http.url,
    noticeRepository,
    guard: createAddressGuard({ allowCidrs: ['127.0.0.0/8'] }),
    repositoriesPerOwner,
    wakeDeliveries: () => {},
    takeCommitted,
  });
  const sending = { ...management, manual: manual ?? createRecorder(attempts) };
  serve(http, { ...sending, bodyBudget });
  return {
    url: http.url,
    management,
    admin: createConsoleHooks(sending),
    attempts,
    call: (method, path, options = {}) =>
      call(http.url + (path.startsWith('/api/') ? path : `/api/v5${path}`), method, options),
    [Symbol.asyncDispose]: () => http.drain(0),
  };
}

function createRecorder(attempts: number[]): SendingDependencies['manual'] {
  const record = async (id: number) => {
    attempts.push(id);
    return undefined;
  };
  return { test: record, redeliver: async (_, id) => ({ attempt: record(id) }) };
}

function serve(http: HttpServer, sending: SendingDependencies & { readonly bodyBudget: BodyBudget }): void {
  const dependencies = { ...sending, requireScope };
  const { world, bodyBudget } = sending;
  const routes = createRoutes<IdentityEnv>();
  for (const some of [
    createRepositoryRoutes(dependencies),
    createHookRoutes(dependencies),
    createDeliveryRoutes(dependencies),
    createBridgeRoutes(dependencies),
    createEventRoutes(dependencies),
  ])
    routes.route('/', some);
  const app = createHttpApp({
    mounts: [
      { path: '/api/v5', errors: 'platform', routes: routes as never },
      ...mountOperations(implementWebhooks(sending, { passwords: 'hidden' }), requireScope),
    ],
    log: createLog('silent'),
    metrics: createMetrics(),
    world,
    maxBodyBytes: 1_048_576,
    bodyBudget,
    checkReady: async () => {},
  });
  http.serve(app);
}

async function call(url: string, method: string, options: CallOptions): Promise<Answer> {
  const { token = 'grace', json, form, body, headers = {} } = options;
  const response = await fetch(url, {
    method,
    headers: {
      ...(token !== '' && { authorization: `Bearer ${token}` }),
      ...(json !== undefined && { 'content-type': 'application/json' }),
      ...(form !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
      ...headers,
    },
    body: body ?? (json === undefined ? form && new URLSearchParams(form) : JSON.stringify(json)) ?? null,
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
}

/** The hooks of the repository that `withDoors` creates. */
export const HOOKS = '/repos/grace/doors/hooks';

/** A test on both engines, with a repository `grace/doors`. */
export function withDoors(title: string, run: (server: ManagementServer, store: Store) => Promise<void>): void {
  forEachEngine(title, async (store) => {
    await using server = await startManagement(store);
    const repository = await server.call('POST', '/user/repos', { json: { name: 'doors' } });
    if (repository.status !== 201) throw new Error(`No repository: ${repository.status}`);
    await run(server, store);
  });
}

/** With GitCode's error texts. */
export function checkRefusal(answer: Answer, status: number, name: string): void {
  assert.equal(answer.status, status);
  assert.equal(answer.body.error_code_name, name);
  assert.equal(answer.body.error_message, answer.body.message);
  assert.match(answer.body.trace_id, /^[0-9a-f]{32}$/);
}
