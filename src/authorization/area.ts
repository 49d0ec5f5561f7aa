/** Builds the authorization area: OAuth 2.0 for applications, sign-in and pages for people, the check of every token. */
import type { Area } from '../area.ts';
import type { Config } from '../config/config.ts';
import type { Store } from '../database/store.ts';
import type { SecretCipher } from '../encryption/secret-cipher.ts';
import { Failure } from '../errors.ts';
import type { RouteMount } from '../http/mount.ts';
import type { RequireScope } from '../http/scope-middleware.ts';
import type { FindUnknownRepositories, Owners, VerifyToken } from '../identity.ts';
import type { Mailer } from '../mail/mailer.ts';
import type { NoticeDependencies } from '../notices/notice-worker.ts';
import type { AuditChange } from '../operations/audit-change.ts';
import { mountOperations } from '../operations/operation-routes.ts';
import type { SessionGuard } from '../pages/signed-in-pages.ts';
import { withSteadyClock } from '../steady-clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { World } from '../world.ts';
import { createPages } from './account-pages/pages.ts';
import { createSessionGuard } from './account-pages/session-guard.ts';
import { createClientLimits } from './accounts/client-limits.ts';
import { createOwners } from './accounts/owners.ts';
import { createRefusalLog } from './accounts/refusal-log.ts';
import { auditChange, implementAdministration } from './administration/administration.ts';
import { listRecipients } from './administration/recipients-store.ts';
import { authorizationDescriptions } from './api/api-descriptions.ts';
import { createUserMount } from './api/user-routes.ts';
import { ensureCommandLineClient } from './applications/command-line-client-store.ts';
import { createSweeper } from './maintenance/sweeper-worker.ts';
import { createAuthorizeMount } from './oauth/authorize.ts';
import { createDeviceMount } from './oauth/device-routes.ts';
import { createProtocolMounts } from './oauth/protocol-routes.ts';
import { createPasswordLinkRoutes } from './password-links/password-link-routes.ts';
import { addPeopleRoutes } from './people-pages/people-routes.ts';
import { createSetupLink } from './sign-in/setup-routes.ts';
import { createSignIn } from './sign-in/sign-in.ts';
import type { UpstreamConfig } from './sign-in/upstream.ts';
import { createIssueLog } from './tokens/issue-log.ts';
import { createRequireScope } from './tokens/require-scope.ts';
import { createSigningKeys } from './tokens/signing-keys.ts';
import { createTokenCount } from './tokens/token-metrics.ts';
import { createVerifyToken } from './tokens/verify-token.ts';

export interface AuthorizationDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly cipher: SecretCipher;
  readonly config: Config['authorization'];
  /** The address of the resource API. */
  readonly baseUrl: string;
  /** The address of the authorization server, which is also its issuer identifier. */
  readonly authUrl: string;
  /** Undefined: mail is off. */
  readonly mailer?: Mailer | undefined;
  /** Finds repositories that a token names in vain; absent if the service has no repositories. */
  readonly createRepositoryCheck?: (owners: Owners) => FindUnknownRepositories;
  /** Lists navigation sections of pages that other areas serve. */
  readonly listSections?: SessionGuard['listSections'];
}

export interface AuthorizationArea extends Area {
  readonly routes: readonly RouteMount[];
  readonly requireScope: RequireScope;
  readonly verifyToken: VerifyToken;
  /** Guards the pages that other areas serve. */
  readonly guard: SessionGuard;
  readonly owners: Owners;
  /** Lists the people who get notices. */
  readonly listRecipients: NoticeDependencies['listRecipients'];
  /** Records the administrative changes of other areas in the audit log. */
  readonly auditChange: AuditChange;
  /** Registers the command line as a client; call before the first request. */
  readonly ensureOwnClient: () => Promise<void>;
  /** Creates the link with which the first administrator is made, once and within a day; undefined if there is one. */
  readonly createSetupLink: () => Promise<string | undefined>;
}

export function createAuthorizationArea(dependencies: AuthorizationDependencies): AuthorizationArea {
  const { store, log, cipher, baseUrl, authUrl } = dependencies;
  const world = withSteadyClock(dependencies.world);
  const signingKeys = createSigningKeys({ store, cipher, world });
  const limits = createClientLimits(dependencies.world);
  const refusals = createRefusalLog({ store, world });
  const countToken = createTokenCount(dependencies.metrics);
  const owners = createOwners(store);
  const findUnknownRepositories = dependencies.createRepositoryCheck?.(owners);
  const common = { store, world, cipher, refusals, countToken, findUnknownRepositories };
  const protocol = {
    ...common,
    log,
    baseUrl,
    issuer: authUrl,
    settings: dependencies.config,
    limits,
    issueLog: createIssueLog(dependencies.world),
    signingKeys,
  };
  const signIn = createSignIn({
    ...common,
    baseUrl: authUrl,
    upstream: readUpstream(dependencies.config),
    mailer: dependencies.mailer,
  });
  const guard = createSessionGuard(signIn.context, dependencies.listSections);
  const respondPage = signIn.context.respondRefusal;
  const verifyToken = createVerifyToken(protocol);
  const requireScope = createRequireScope(verifyToken);
  return {
    apiDescriptions: authorizationDescriptions,
    routes: [
      ...createProtocolMounts(protocol),
      createAuthorizeMount({ ...protocol, signIn }),
      createDeviceMount({ ...protocol, signIn }),
      createUserMount(protocol, { verifyToken, requireScope }),
      ...mountOperations(implementAdministration({ ...signIn.context, countToken }), requireScope),
      { path: '/', errors: 'page', routes: signIn.routes, respondPage },
      { path: '/', errors: 'page', routes: createPages(signIn.context, guard, [addPeopleRoutes]), respondPage },
      { path: '/', errors: 'page', routes: createPasswordLinkRoutes(signIn.context), respondPage },
    ],
    workers: [createSweeper({ ...protocol, metrics: dependencies.metrics, isClockTrusted: world.isClockTrusted })],
    requireScope,
    verifyToken,
    guard,
    auditChange,
    owners,
    listRecipients: (audience) => listRecipients(store, audience),
    ensureOwnClient: () => ensureCommandLineClient(store, world.nowMs()),
    createSetupLink: () => createSetupLink(signIn.context),
  };
}

function readUpstream(config: Config['authorization']): UpstreamConfig | undefined {
  const { upstreamIssuer: issuer, upstreamClientId: clientId } = config;
  if (issuer === undefined) return undefined;
  if (clientId === undefined)
    throw new Failure('invalid', 'Cannot start: with UPSTREAM_ISSUER, UPSTREAM_CLIENT_ID must be set too');
  return {
    issuer,
    clientId,
    clientSecret: config.upstreamClientSecret,
    name: config.upstreamName,
    scope: config.upstreamScope,
    signUp: config.upstreamSignUp,
  };
}
