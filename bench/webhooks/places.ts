/** The store of an engine's queue: a data folder, or a new PostgreSQL or Redis from the system's packages. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createTestDatabase,
  type PostgresCluster,
  startPostgresCluster,
} from '../../test/support/store/postgres-cluster.ts';
import { NEW_POSTGRES } from '../support/new-postgres.ts';
import type { EngineOptions } from './engine.ts';

export const ENGINES = ['trivet-postgres', 'trivet-sqlite', 'pg-boss', 'bullmq'] as const;
export type EngineTitle = (typeof ENGINES)[number];

export interface Place {
  readonly title: EngineTitle;
  readonly options: EngineOptions;
  /** The database's process, whose time is measured; 0 for an embedded database. */
  readonly databasePid: number;
  readonly stop: () => void;
}

let cluster: PostgresCluster | undefined;

export async function openPlace(title: EngineTitle): Promise<Place> {
  const dataDir = mkdtempSync(join(tmpdir(), 'trivet-bench-'));
  const removeDir = () => rmSync(dataDir, { recursive: true, force: true });
  if (title === 'trivet-sqlite')
    return { title, options: { kind: 'trivet', dataDir }, databasePid: 0, stop: removeDir };
  if (title === 'bullmq') return await openRedis(title, dataDir, removeDir);
  cluster ??= await startPostgresCluster(NEW_POSTGRES);
  const databaseUrl = await createTestDatabase(cluster.socketDir, `bench_${Date.now()}`);
  const databasePid = Number(readFileSync(join(cluster.socketDir, 'data/postmaster.pid'), 'utf8').split('\n')[0]);
  const kind = title === 'pg-boss' ? 'pg-boss' : 'trivet';
  return { title, options: { kind, dataDir, databaseUrl }, databasePid, stop: removeDir };
}

async function openRedis(title: EngineTitle, dataDir: string, removeDir: () => void): Promise<Place> {
  const redisPort = await findFreePort();
  // As BullMQ advises: faster than `always`, but up to a second of jobs is not on the disk.
  const flags = { '--port': redisPort, '--dir': dataDir, '--appendonly': 'yes', '--appendfsync': 'everysec' };
  const redis = spawn('redis-server', Object.entries(flags).flat().map(String), { stdio: 'ignore' });
  await once(redis, 'spawn').catch((cause: unknown) => {
    throw new Error('BullMQ needs a Redis: install redis-server, or leave bullmq out of --only', { cause });
  });
  const stop = () => {
    redis.kill('SIGKILL');
    removeDir();
  };
  return { title, options: { kind: 'bullmq', dataDir, redisPort }, databasePid: redis.pid ?? 0, stop };
}

function findFreePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

export async function withPlace<T>(title: EngineTitle, work: (place: Place) => Promise<T>): Promise<T> {
  const place = await openPlace(title);
  try {
    return await work(place);
  } finally {
    place.stop();
  }
}

export async function closePlaces(): Promise<void> {
  await cluster?.stop();
}
