import { findPostgresBinaries, type PostgresCluster, startPostgresCluster } from './postgres-cluster.ts';

/** One PostgreSQL server for a whole run: `node --test --test-global-setup=test/support/global-setup.ts`. */

let cluster: PostgresCluster | undefined;

export async function globalSetup(): Promise<void> {
  if (findPostgresBinaries() === undefined) return;
  cluster = await startPostgresCluster();
  process.env.TRIVET_TEST_POSTGRES = cluster.socketDir;
}

export async function globalTeardown(): Promise<void> {
  await cluster?.stop();
}
