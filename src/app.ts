/** Builds the program with every part and every link between areas, and shuts it down. */
import { readFileSync } from 'node:fs';
import { createReferenceRoutes } from './api-reference/reference-routes.ts';
import type { Area, OwnPort } from './area.ts';
import { createAuthorizationArea } from './authorization/area.ts';
import { type NamedServer, writeBanner } from './banner.ts';
import type { Config } from './config/config.ts';
import { listHttpPorts } from './config/http-ports.ts';
import { createConsoleArea, createSectionList } from './console/area.ts';
import { migrations } from './database/migrations/list.ts';
import { checkStoreReady } from './database/startup/check-ready.ts';
import { lockDataDir } from './database/startup/data-dir-lock.ts';
import { openSecretCipher } from './database/startup/encryption-keys.ts';
import { openStore } from './database/startup/open-store.ts';
import { withStoreClock } from './database/store-clock.ts';
import { openGrpcServer } from './grpc/listener/server.ts';
import { nameTlsFiles } from './grpc/listener/tls-files.ts';
import { createBodyBudget } from './http/body/body-budget.ts';
import { createEndpointApp } from './http/endpoint-app.ts';
import { listEndpoints } from './http/endpoint-path.ts';
import { type CompleteApi, createHttpApp } from './http/http-app.ts';
import { type HttpServer, listenHttp } from './http/http-server.ts';
import { createRequestObserver } from './http/observe-requests.ts';
import { completeDocument } from './http/openapi/complete-document.ts';
import { createRoutes } from './http/routes.ts';
import { createMail } from './mail/create-mail.ts';
import type { Mailer } from './mail/mailer.ts';
import { openSmtp } from './mail/smtp.ts';
import type { CountGarbage } from './memory/garbage.ts';
import { createDiskSource, NO_DISK_SOURCE } from './notices/disk-source.ts';
import { createNoticeWorker } from './notices/notice-worker.ts';
import { capByOpenFiles } from './open-files.ts';
import { createPredictionArea } from './prediction/area.ts';
import { createLog, type Log, openLogOutput } from './telemetry/log.ts';
import { createMetrics } from './telemetry/metrics.ts';
import { openTracing } from './telemetry/tracing.ts';
import { createRepositoryLookup, createWebhooksArea } from './webhooks/area.ts';
import type { Worker } from './workers/worker.ts';
import { realWorld, type World } from './world.ts';

/** The share of the files that this process may open, for all HTTP listeners together. */
const HTTP_SHARE_OF_FILES = 0.25;
const GRPC_SHARE_OF_FILES = 0.5;

type Part = Config['server']['parts'][number];

export interface App {
  readonly httpUrl: string;
  /** `host:port`, as a client on this machine reaches it. */
  readonly grpcAddress: string;
  /** The text that the program prints once it is up: where it listens, and where to create the first administrator. */
  readonly banner: string;
  readonly log: Log;
  /** Stops: listeners drain and workers stop at the same time, then the store closes. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The dependencies of a process beside its configuration. */
export interface Surroundings {
  readonly world: World;
  /** Called with the number of bytes outside the heap that are soon garbage. */
  readonly countGarbage: CountGarbage;
  /** Aborts the start, which then rejects and closes what it has opened. */
  readonly stopping: AbortSignal;
}

const SURROUNDINGS: Surroundings = {
  world: realWorld,
  countGarbage: () => {},
  stopping: new AbortController().signal,
};

export async function startApp(config: Config, given: Partial<Surroundings> = {}): Promise<App> {
  await using undo = new AsyncDisposableStack();
  const { countGarbage, ...surroundings } = { ...SURROUNDINGS, ...given };
  const base = { ...(await openBase(config, surroundings, undo)), countGarbage };
  const mail = createMail({ ...base, smtp: openSmtp(config.mail) });
  const { areas, notices, createSetupLink } = await createAreas(config, base, mail?.mailer);
  const grpc = await openGrpc(config, base, areas);
  const own = await openOwnPorts(config, base, { areas, undo });
  const workers = [
    ...areas.flatMap((area) => area.workers ?? []),
    ...(mail === undefined ? [] : [mail.worker]),
    ...notices,
  ];
  const listeners = [base.http, ...own.map(({ server }) => server), grpc];
  undo.defer(() => stopTogether(listeners, workers, config.server.stopTimeoutMs));
  const setupLink = config.server.parts.includes('authorization') ? await createSetupLink() : undefined;
  // From here on nothing is awaited: a service that has begun to serve is stopped in the order of a stop.
  surroundings.stopping.throwIfAborted();
  for (const worker of workers) worker.start();
  serveHttp(config, base, { areas, own });
  grpc.setServing(true);
  const { http, log, store } = base;
  const grpcAddress = `${new URL(http.url).hostname}:${grpc.port}`;
  log.info({ http: http.url, grpc: grpcAddress, store: store.engine }, 'started');
  const running = undo.move();
  return {
    httpUrl: http.url,
    grpcAddress,
    banner: writeBanner({ http: http.url, grpc: grpcAddress, own: own.map(describeServer), setupLink }),
    log,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Opens the common parts: logs, metrics, the store, and the HTTP port, which is bound first since areas need its address. */
async function openBase(
  config: Config,
  { world, stopping }: Pick<Surroundings, 'world' | 'stopping'>,
  undo: AsyncDisposableStack,
) {
  const log = createLog(config.log.level, openLogOutput(config.log.format));
  const metrics = createMetrics({ log });
  const tracing = undo.use(await openTracing(config.tracing, log));
  // Only one service may use an embedded database; commands work beside it without the lock.
  const lock = config.store.databaseUrl === undefined ? undo.use(lockDataDir(config.store.dataDir)) : undefined;
  const store = undo.use(await openStore({ ...config.store, migrations, log, world, metrics, stopping }));
  const cipher = await openSecretCipher(store, { ...config.store, configured: config.store.secretKeys, world });
  lock?.recordKeys(cipher.keyIds);
  const { host, httpPort, stopTimeoutMs, trustedProxies } = config.server;
  const share = HTTP_SHARE_OF_FILES / listHttpPorts(config).length;
  const maxConnections = capByOpenFiles(config.server.maxHttpConnections, share);
  const http = await listenHttp({ host, port: httpPort, maxConnections, trustedProxies });
  undo.defer(() => http.drain(stopTimeoutMs));
  return { world: withStoreClock(world, store), log, metrics, tracing, store, cipher, http, maxConnections };
}

type Base = Awaited<ReturnType<typeof openBase>> & Pick<Surroundings, 'countGarbage'>;

/** Creates the areas that this process serves. An area that it does not serve still provides its functions to the others. */
async function createAreas(config: Config, base: Base, mailer: Mailer | undefined) {
  const { store, world, log, metrics, cipher, http } = base;
  const { parts } = config.server;
  const baseUrl = config.server.baseUrl ?? http.url;
  const authorization = createAuthorizationArea({
    store,
    world,
    log,
    metrics,
    cipher,
    config: config.authorization,
    baseUrl,
    authUrl: config.server.authUrl ?? http.url,
    createRepositoryCheck: (owners) => createRepositoryLookup(store, owners),
    listSections: createSectionList(parts),
    mailer,
  });
  const prediction = createPredictionArea({
    store,
    storePlace: config.store,
    world,
    log,
    metrics,
    config: config.prediction,
    verifyToken: authorization.verifyToken,
    requireScope: authorization.requireScope,
    auditChange: authorization.auditChange,
  });
  if (parts.includes('authorization')) await authorization.ensureOwnClient();
  if (parts.includes('prediction')) await prediction.loadModels();
  const webhooks = createWebhooksArea({
    store,
    world,
    log,
    metrics,
    cipher,
    // A process that makes no deliveries does not need the certificate authorities of their receivers.
    config: parts.includes('webhooks') ? config.webhooks : { ...config.webhooks, caFile: undefined },
    baseUrl,
    requireScope: authorization.requireScope,
    owners: authorization.owners,
    auditChange: authorization.auditChange,
  });
  const areaByPart: Partial<Record<Part, Area>> = { authorization, prediction, webhooks };
  const areas = parts.flatMap((part) => areaByPart[part] ?? []);
  // The sign-in area shows people what else this process serves.
  if (parts.includes('authorization')) {
    const hookAdmin = parts.includes('webhooks') ? webhooks.admin : undefined;
    const modelAdmin = parts.includes('prediction') ? prediction.admin : undefined;
    areas.push(createConsoleArea({ world, guard: authorization.guard, hookAdmin, modelAdmin }));
  }
  const notices = createNotices(config, base, { authorization, webhooks, prediction, mailer });
  return { areas, notices, createSetupLink: () => authorization.createSetupLink() };
}

interface NoticeParts {
  readonly authorization: ReturnType<typeof createAuthorizationArea>;
  readonly webhooks: ReturnType<typeof createWebhooksArea>;
  readonly prediction: ReturnType<typeof createPredictionArea>;
  /** Undefined: mail is off. */
  readonly mailer: Mailer | undefined;
}

/** Creates the notices about the areas of this process and about the disk of its database, by mail and to webhooks. */
function createNotices(
  { server, store: { dataDir, databaseUrl } }: Config,
  { store, world, log, http }: Base,
  { authorization: { listRecipients }, webhooks, prediction, mailer }: NoticeParts,
): Worker[] {
  const publish = webhooks.publishNotice;
  if (mailer === undefined && publish === undefined) return [];
  const service = server.authUrl ?? http.url;
  const sources = [
    databaseUrl === undefined ? createDiskSource(dataDir) : NO_DISK_SOURCE,
    ...(server.parts.includes('webhooks') ? [webhooks.createNotices(service)] : []),
    ...(server.parts.includes('prediction') ? [prediction.createNotices(service)] : []),
  ];
  return [createNoticeWorker({ store, world, log, mailer, publish, sources, listRecipients, service })];
}

function openGrpc(config: Config, { log, metrics, world, tracing, countGarbage }: Base, areas: readonly Area[]) {
  return openGrpcServer({
    services: areas.flatMap((area) => area.services ?? []),
    host: config.server.host,
    port: config.server.grpcPort,
    unixSocket: config.grpc.unixSocket,
    unixSocketMode: config.grpc.unixSocketMode,
    tls: nameTlsFiles(config.grpc),
    maxMessageBytes: config.grpc.maxMessageBytes,
    bufferBytes: config.grpc.bufferBytes,
    maxConnections: capByOpenFiles(config.grpc.maxConnections, GRPC_SHARE_OF_FILES),
    trustedProxies: config.server.trustedProxies,
    reflection: config.grpc.reflection ? readFileSync(new URL('gen/descriptors.binpb', import.meta.url)) : undefined,
    log,
    metrics,
    world,
    tracing,
    countGarbage,
  });
}

interface OwnServer {
  readonly port: OwnPort;
  readonly server: HttpServer;
}

/** The ports that areas have beside the common one. */
async function openOwnPorts(
  config: Config,
  { maxConnections }: Base,
  { areas, undo }: { readonly areas: readonly Area[]; readonly undo: AsyncDisposableStack },
): Promise<OwnServer[]> {
  const { host, stopTimeoutMs, trustedProxies } = config.server;
  const own: OwnServer[] = [];
  for (const port of areas.flatMap((area) => area.ownPorts ?? [])) {
    const place = { host, port: port.port, variable: port.variable };
    const server = await listenHttp({ ...place, maxConnections, trustedProxies });
    undo.defer(() => server.drain(stopTimeoutMs));
    own.push({ port, server });
  }
  return own;
}

function describeServer({ port, server }: OwnServer): NamedServer {
  return { name: port.name, url: server.url };
}

function serveHttp(
  config: Config,
  { log, metrics, world, tracing, store, http, countGarbage }: Base,
  { areas, own }: { readonly areas: readonly Area[]; readonly own: readonly OwnServer[] },
): void {
  const { maxBodyBytes, trustedProxies } = config.server;
  const observer = createRequestObserver({ log, metrics, world, tracing, trustedProxies });
  const common = { log, metrics, world, observer, maxBodyBytes, bodyBudget: createBodyBudget({ countGarbage }) };
  const mounts = areas.flatMap((area) => area.routes ?? []);
  const reference = {
    descriptions: areas.flatMap((area) => area.apiDescriptions ?? []),
    baseUrl: config.server.baseUrl ?? http.url,
    authUrl: config.server.authUrl ?? http.url,
  };
  const completeApi: CompleteApi = (document, styleOf) => completeDocument(document, { ...reference, styleOf });
  http.serve(
    createHttpApp({
      ...common,
      mounts,
      completeApi,
      createReference: (readApi) => createReferenceRoutes(readApi, reference.baseUrl),
      checkReady: () => checkStoreReady(store),
    }),
  );
  for (const { port, server } of own) {
    const { errors, endpoints } = port;
    const mount = { path: '/', errors, endpoints, routes: createRoutes() };
    server.serve(createEndpointApp({ ...common, errors, endpoints: listEndpoints(mount) }));
  }
}

/** Listeners and workers end at the same time, so that the whole stop fits into one deadline. */
async function stopTogether(
  listeners: readonly Pick<HttpServer, 'drain'>[],
  workers: readonly Worker[],
  timeoutMs: number,
): Promise<void> {
  await Promise.all([
    ...listeners.map((listener) => listener.drain(timeoutMs)),
    ...workers.map((worker) => worker.stop()),
  ]);
}
