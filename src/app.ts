/** The composition root: every part and every link, in order of construction. */
import type { Area } from './area.ts';
import type { Config } from './config/config.ts';
import { checkStoreReady } from './database/check-ready.ts';
import { lockDataDir } from './database/data-dir-lock.ts';
import { migrations } from './database/migrations/list.ts';
import { openStore } from './database/open-store.ts';
import { openVault } from './database/vault-keys.ts';
import { createHttpApp } from './http/http-app.ts';
import { listenHttp } from './http/http-server.ts';
import { createLog, type Log } from './telemetry/log.ts';
import { createMetrics } from './telemetry/metrics.ts';
import type { Worker } from './workers/worker.ts';
import { realWorld, type World } from './world.ts';

export interface App {
  readonly httpUrl: string;
  /** What to print once the program is up: where it listens. */
  readonly banner: string;
  readonly log: Log;
  /** Stops in order: no new work, work under way ends, workers stop, the store closes. */
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startApp(config: Config, world: World = realWorld): Promise<App> {
  await using undo = new AsyncDisposableStack();
  const log = createLog(config.log.level);
  const metrics = createMetrics();
  // Only the embedded database is one process's own; commands work beside it without the lock.
  if (config.store.databaseUrl === undefined) undo.use(lockDataDir(config.store.dataDir));
  const store = undo.use(await openStore({ ...config.store, migrations, log, world }));
  await openVault(store, { ...config.store, configured: config.store.secretKeys, world });

  const http = await listenHttp({ host: config.server.host, port: config.server.httpPort });
  undo.defer(() => http.drain(config.server.stopTimeoutMs));

  const areas: readonly Area[] = [];
  const workers = areas.flatMap((area) => area.workers ?? []);
  const httpApp = createHttpApp({
    mounts: areas.flatMap((area) => area.routes ?? []),
    log,
    metrics,
    world,
    maxBodyBytes: config.server.maxBodyBytes,
    checkReady: () => checkStoreReady(store),
  });
  http.serve(httpApp.fetch);
  startWorkers(workers, undo);

  log.info({ http: http.url }, 'started');
  const running = undo.move();
  return {
    httpUrl: http.url,
    banner: `Trivet is ready\n  HTTP  ${http.url}`,
    log,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

function startWorkers(workers: readonly Worker[], undo: AsyncDisposableStack): void {
  for (const worker of workers) {
    worker.start();
    undo.defer(() => worker.stop());
  }
}
