/** Opens the store for a command, whether the service is up or down. */
import { resolve } from 'node:path';
import { type Config, readConfig } from '../config/config.ts';
import { migrations } from '../database/migrations/list.ts';
import { openSecretCipher } from '../database/startup/encryption-keys.ts';
import { hasDatabase, openStore } from '../database/startup/open-store.ts';
import type { Store } from '../database/store.ts';
import { withStoreClock } from '../database/store-clock.ts';
import type { SecretCipher } from '../encryption/secret-cipher.ts';
import { createLog, type Log } from '../telemetry/log.ts';
import { realWorld, type World } from '../world.ts';
import { remark } from './output.ts';

/** A command works with the same store as the service, whether that is up or down. */
export interface CliStore {
  readonly store: Store;
  readonly config: Config;
  /** The clock is that of the database, which the service uses too. */
  readonly world: World;
  readonly cipher: SecretCipher;
  /** Warnings and errors only: the output of a command goes through `output.ts`. */
  readonly log: Log;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface CliStoreOptions {
  /**
   * Only commands that store first objects create a store: a model, an account. Any other command in the wrong folder would answer
   * from an empty store.
   */
  readonly ifAbsent?: 'create' | 'refuse';
}

export async function openCliStore({ ifAbsent = 'refuse' }: CliStoreOptions = {}): Promise<CliStore> {
  const config = readConfig();
  const log = createLog('warn');
  await using undo = new AsyncDisposableStack();
  const isNew = config.store.databaseUrl === undefined && !hasDatabase(config.store.dataDir);
  const store = undo.use(await openStore({ ...config.store, migrations, ifAbsent, log, world: realWorld }));
  const world = withStoreClock(realWorld, store);
  if (isNew) remark(`Created a store in "${resolve(config.store.dataDir)}"`);
  const cipher = await openSecretCipher(store, { ...config.store, configured: config.store.secretKeys, world });
  const opened = undo.move();
  return { store, config, world, log, cipher, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}
