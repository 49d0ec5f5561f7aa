import { type Config, readConfig } from '../config/config.ts';
import { migrations } from '../database/migrations/list.ts';
import { openStore } from '../database/open-store.ts';
import type { Store } from '../database/store.ts';
import { openVault } from '../database/vault-keys.ts';
import { createLog, type Log } from '../telemetry/log.ts';
import type { Vault } from '../vault/vault.ts';
import { realWorld, type World } from '../world.ts';

/** What a command works with: the same store as the service, whether that is up or down. */
export interface CliStore {
  readonly store: Store;
  readonly config: Config;
  readonly world: World;
  readonly vault: Vault;
  /** Warnings and errors only: a command's own words go through `output.ts`. */
  readonly log: Log;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function openCliStore(): Promise<CliStore> {
  const config = readConfig();
  const world = realWorld;
  const log = createLog('warn');
  await using undo = new AsyncDisposableStack();
  const store = undo.use(await openStore({ ...config.store, migrations, log, world }));
  const vault = await openVault(store, { ...config.store, configured: config.store.secretKeys, world });
  const opened = undo.move();
  return { store, config, world, log, vault, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}
