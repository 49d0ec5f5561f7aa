/** Builds the webhooks area: repositories and their hooks, the intake of events, and their delivery. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Area } from '../area.ts';
import type { Config } from '../config/config.ts';
import type { Store } from '../database/store.ts';
import type { SecretCipher } from '../encryption/secret-cipher.ts';
import type { HttpEnv } from '../http/context.ts';
import type { RouteMount } from '../http/mount.ts';
import { createRoutes } from '../http/routes.ts';
import type { IdentityEnv, RequireScope } from '../http/scope-middleware.ts';
import type { FindUnknownRepositories, Owners } from '../identity.ts';
import type { NoticeSource, PublishNotice } from '../notices/notice.ts';
import type { AuditChange } from '../operations/audit-change.ts';
import { mountOperations } from '../operations/operation-routes.ts';
import { withSteadyClock } from '../steady-clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Worker } from '../workers/worker.ts';
import type { World } from '../world.ts';
import { createAddressGuard } from './addresses/address-guard.ts';
import { implementWebhooks } from './administration/implement-webhooks.ts';
import { webhookDescriptions } from './api/api-descriptions.ts';
import { createBridgeRoutes } from './api/bridge-secret-routes.ts';
import { createDeliveryRoutes } from './api/delivery-routes.ts';
import { createEventRoutes } from './api/event-routes.ts';
import { createHookRoutes } from './api/hook-routes.ts';
import { createRepositoryRoutes } from './api/repository-routes.ts';
import { readAuthorities } from './delivery/send/delivery-authorities.ts';
import { createDeliveryMinutes } from './delivery/statistics/delivery-minutes-worker.ts';
import { createDeliverySweeper } from './delivery/worker/delivery-sweeper.ts';
import { createDeliveryWorker } from './delivery/worker/delivery-worker.ts';
import { createEventSweeper } from './intake/event-sweeper-worker.ts';
import { type ConsoleHooks, createConsoleHooks } from './management/console-hooks.ts';
import { createHookNotices } from './management/hook-notices.ts';
import { createManagement } from './management/management.ts';
import { createNoticePublisher } from './management/notice-events.ts';
import { createRepositoryCheck } from './repositories/repository-access.ts';

export interface WebhooksDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly cipher: SecretCipher;
  readonly config: Config['webhooks'];
  /** The address of the resource API. */
  readonly baseUrl: string;
  readonly requireScope: RequireScope;
  readonly owners: Owners;
  readonly auditChange: AuditChange;
}

export interface WebhooksArea extends Area {
  readonly routes: readonly RouteMount[];
  readonly workers: readonly Worker[];
  /** Reads and changes webhooks, for the pages of the console. */
  readonly admin: ConsoleHooks;
  /** Notices to owners of webhooks; `pagesUrl` is where the pages are. */
  readonly createNotices: (pagesUrl: string) => NoticeSource;
  /** Publishes notices to the webhooks of a repository; undefined when no repository is set. */
  readonly publishNotice: PublishNotice | undefined;
}

export function createWebhooksArea(dependencies: WebhooksDependencies): WebhooksArea {
  const { store, log, metrics, cipher, owners, baseUrl, requireScope } = dependencies;
  const world = withSteadyClock(dependencies.world);
  const { noticeRepository, repositoriesPerOwner } = dependencies.config;
  const guard = createAddressGuard({
    ...dependencies.config,
    onRefused: (refusal) =>
      dependencies.log.info(
        { ...refusal },
        'A webhook url was refused; WEBHOOK_ALLOW_CIDRS and WEBHOOK_ALLOW_HOSTS open your own network',
      ),
  });
  const ca = readAuthorities(dependencies.config.caFile);
  const minutes = createDeliveryMinutes({ store, world, log });
  const deliveries = createDeliveryWorker({ store, world, log, metrics, cipher, guard, ca, onAttempt: minutes.count });
  const management = createManagement({
    store,
    world,
    log,
    cipher,
    owners,
    auditChange: dependencies.auditChange,
    baseUrl,
    guard,
    noticeRepository,
    repositoriesPerOwner,
    wakeDeliveries: () => deliveries.wake(),
    takeCommitted: (committed, versions) => deliveries.takeCommitted(committed, versions),
  });
  const managed = { ...management, requireScope, manual: deliveries.manual };
  const routes = createRoutes<IdentityEnv>();
  routes.route('/', createRepositoryRoutes(managed));
  routes.route('/', createHookRoutes(managed));
  routes.route('/', createDeliveryRoutes(managed));
  routes.route('/', createBridgeRoutes(managed));
  routes.route('/', createEventRoutes(managed));
  return {
    apiDescriptions: webhookDescriptions,
    // Every route begins with requireScope, which sets the identity.
    routes: [
      { path: '/api/v5', errors: 'platform', routes: routes as unknown as OpenAPIHono<HttpEnv> },
      ...mountOperations(implementWebhooks(managed, { passwords: 'hidden' }), requireScope),
    ],
    workers: [
      minutes,
      deliveries,
      createDeliverySweeper({ store, world, log, metrics }),
      createEventSweeper({ store, world, log, metrics }),
    ],
    admin: createConsoleHooks(managed),
    createNotices: (pagesUrl) => createHookNotices(store, { pagesUrl, noticeRepository }),
    publishNotice: noticeRepository === undefined ? undefined : createNoticePublisher(management, noticeRepository),
  };
}

/** Finds names of repositories that a person cannot reach, for the area that limits tokens to repositories. */
export function createRepositoryLookup(store: Store, owners: Owners): FindUnknownRepositories {
  return createRepositoryCheck(store, owners);
}
