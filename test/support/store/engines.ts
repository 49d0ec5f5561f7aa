import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { migrations as allMigrations } from '../../../src/database/migrations/list.ts';
import { openStore, type StoreOptions } from '../../../src/database/startup/open-store.ts';
import type { Migration, Store } from '../../../src/database/store.ts';
import { createLog, type Log } from '../../../src/telemetry/log.ts';
import { realWorld, type World } from '../../../src/world.ts';
import { makeDataFolder } from '../basics/data-folder.ts';
import { copyPostgresTemplate, copySqliteTemplate } from './migrated-databases.ts';
import {
  createTestDatabase,
  findPostgresBinaries,
  type PostgresCluster,
  startPostgresCluster,
} from './postgres-cluster.ts';

/** Runs a test on SQLite and on PostgreSQL, each time with a new, empty, migrated database. */

export type TestEngine = 'sqlite' | 'postgres';

export const engines: readonly TestEngine[] = ['sqlite', 'postgres'];

/** The engine of services that run on one engine: SQLite, unless a file of tests on PostgreSQL has set another one. */
export function readServiceEngine(): TestEngine {
  return process.env.TRIVET_TEST_ENGINE === 'postgres' ? 'postgres' : 'sqlite';
}

export interface EngineContext {
  readonly engine: TestEngine;
  readonly t: TestContext;
  /** Another process or another `openStore` finds the database here. */
  readonly place: StorePlace;
  /** Another store on the same database, as another process has it. Closed with the test. */
  readonly openAnother: (overrides?: Partial<StoreOptions>) => Promise<Store>;
}

export interface StorePlace {
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
}

export interface EngineTestOptions {
  /** For what one engine alone can do: both, unless given. */
  readonly only?: TestEngine;
  /** All of the program's, unless given. */
  readonly migrations?: readonly Migration[];
  readonly world?: World;
  readonly log?: Log;
  readonly poolSize?: number;
}

type EngineTest = (store: Store, context: EngineContext) => Promise<void> | void;

export function forEachEngine(title: string, run: EngineTest, options: EngineTestOptions = {}): void {
  for (const engine of options.only === undefined ? engines : [options.only])
    test(`${title} (${engine})`, { skip: findReasonToSkip(engine) }, async (t) => {
      await using parts = new AsyncDisposableStack();
      const place = parts.use(await createPlaceOfTest(engine, options.migrations));
      const openAnother = async (overrides: Partial<StoreOptions> = {}) =>
        parts.use(await openTestStore(place, options, overrides));
      await run(await openAnother(), { engine, t, place, openAnother });
    });
}

/** Makes an empty SQLite store in the folder, as the first start of the service does. */
export async function createEmptyStore(dataDir: string): Promise<void> {
  const store = await openTestStore({ dataDir, databaseUrl: undefined }, {}, {});
  await store[Symbol.asyncDispose]();
}

/** For tests that cannot use `forEachEngine`: the reason not to run on this engine here, or false. */
export function findReasonToSkip(engine: TestEngine): string | false {
  if (engine === 'sqlite' || findPostgresBinaries() !== undefined || process.env.CI === 'true') return false;
  return 'no PostgreSQL server is installed (initdb and postgres in /usr/lib/postgresql, pg_config or PATH)';
}

/** A new, empty database: a folder, and a schema in the test's PostgreSQL server. The caller removes the folder. */
export async function createStorePlace(engine: TestEngine): Promise<StorePlace> {
  const dataDir = makeDataFolder('trivet-test-');
  if (engine === 'sqlite') return { dataDir, databaseUrl: undefined };
  const schema = `t_${randomUUID().replaceAll('-', '')}`;
  return { dataDir, databaseUrl: await createTestDatabase(await ensureCluster(), schema) };
}

interface MigratedPlace extends StorePlace, AsyncDisposable {}

/**
 * A new database for stores with all migrations of the program. In a run of many files it is a copy of one that was migrated
 * once; in a file that is run alone, the first store migrates it.
 */
export async function createMigratedPlace(engine: TestEngine): Promise<MigratedPlace> {
  const template = process.env.TRIVET_TEST_TEMPLATE;
  if (template === undefined) return removeInTheEnd(await createStorePlace(engine));
  const dataDir = makeDataFolder('trivet-test-');
  if (engine === 'sqlite') {
    copySqliteTemplate(template, dataDir);
    return removeInTheEnd({ dataDir, databaseUrl: undefined });
  }
  const copy = await copyPostgresTemplate(await ensureCluster());
  return removeInTheEnd({ dataDir, databaseUrl: copy.databaseUrl }, copy);
}

/** Tests with migrations of their own begin with an empty database. */
async function createPlaceOfTest(
  engine: TestEngine,
  migrations: readonly Migration[] | undefined,
): Promise<MigratedPlace> {
  return migrations === undefined ? await createMigratedPlace(engine) : removeInTheEnd(await createStorePlace(engine));
}

function removeInTheEnd(place: StorePlace, copy?: AsyncDisposable): MigratedPlace {
  return {
    ...place,
    [Symbol.asyncDispose]: async () => {
      rmSync(place.dataDir, { recursive: true, force: true });
      await copy?.[Symbol.asyncDispose]();
    },
  };
}

export async function openTestStore(
  place: StorePlace,
  options: EngineTestOptions = {},
  overrides: Partial<StoreOptions> = {},
): Promise<Store> {
  return await openStore({
    ...place,
    poolSize: options.poolSize ?? 5,
    migrations: options.migrations ?? allMigrations,
    world: options.world ?? realWorld,
    log: options.log ?? createLog('silent'),
    ...overrides,
  });
}

let ownCluster: Promise<PostgresCluster> | undefined;

/** The server of the whole run, or one of this file when it is run alone; that one ends by itself with this process. */
async function ensureCluster(): Promise<string> {
  const shared = process.env.TRIVET_TEST_POSTGRES;
  if (shared !== undefined) return shared;
  ownCluster ??= startPostgresCluster();
  return (await ownCluster).socketDir;
}
