import { type Config, readConfig } from '../config/config.ts';
import { migrations } from '../database/migrations/list.ts';
import { openStore } from '../database/open-store.ts';
import type { Store } from '../database/store.ts';
import { createLog, type Log } from '../telemetry/log.ts';
import { realWorld, type World } from '../world.ts';

/** What a command works with: the same store as the service, whether that is up or down. */
export interface CliStore {
  readonly store: Store;
  readonly config: Config;
  readonly world: World;
  /** Warnings and errors only: a command's own words go through `output.ts`. */
  readonly log: Log;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function openCliStore(): Promise<CliStore> {
  const config = readConfig();
  const world = realWorld;
  const log = createLog('warn');
  const { dataDir, databaseUrl, poolSize } = config.store;
  const store = await openStore({ dataDir, databaseUrl, poolSize, migrations, log, world });
  return { store, config, world, log, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
}
