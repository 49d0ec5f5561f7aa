import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeMemoryFolder } from './basics/data-folder.ts';
import { createPostgresTemplate, createSqliteTemplate } from './store/migrated-databases.ts';
import {
  findPostgresBinaries,
  type PostgresCluster,
  preparePostgresData,
  startPostgresCluster,
} from './store/postgres-cluster.ts';

/** All files of a run share these parts: `node --test --test-global-setup=test/support/global-setup.ts`. */

let cluster: PostgresCluster | undefined;
let compileCacheDir: string | undefined;
let memoryFolder: string | undefined;
let template: string | undefined;
let postgresData: string | undefined;

export async function globalSetup(): Promise<void> {
  try {
    await prepare();
  } catch (error) {
    await globalTeardown();
    throw error;
  }
}

async function prepare(): Promise<void> {
  // Hundreds of processes import the same sources: without a cache, compiling them takes half of the start of each.
  compileCacheDir = mkdtempSync(join(tmpdir(), 'trivet-compile-cache-'));
  process.env.NODE_COMPILE_CACHE ??= compileCacheDir;
  memoryFolder = makeMemoryFolder();
  if (memoryFolder !== undefined) process.env.TRIVET_TEST_DATA = memoryFolder;
  template = createSqliteTemplate();
  const binaries = findPostgresBinaries();
  if (binaries !== undefined) {
    postgresData = preparePostgresData(binaries);
    process.env.TRIVET_TEST_POSTGRES_DATA = postgresData;
    cluster = await startPostgresCluster();
    await createPostgresTemplate(cluster.socketDir);
    process.env.TRIVET_TEST_POSTGRES = cluster.socketDir;
  }
  process.env.TRIVET_TEST_TEMPLATE = template;
}

export async function globalTeardown(): Promise<void> {
  // A second signal may arrive while the server stops.
  const running = cluster;
  cluster = undefined;
  await running?.stop();
  for (const folder of [compileCacheDir, template, postgresData, memoryFolder])
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
}
