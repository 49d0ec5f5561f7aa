/** Opens client connections to PostgreSQL, and retries after delays when the server is away. */
import type pg from 'pg';
import { Failure } from '../../errors.ts';
import type { World } from '../../world.ts';
import { isConnectionLost, translatePostgresError } from './postgres-pool.ts';
import { type PostgresWatch, refuseWhileAway } from './postgres-watch.ts';
import { retryWhile } from './retry-while.ts';

/** The delays before retries after a lost connection, in milliseconds. Together they outlast a quick restart of the server. */
export const RECONNECT_DELAYS_MS = [20, 100, 400, 1_000, 2_500];

export interface PostgresClients {
  /** Does the work on a connection of the pool that no other work uses. A lost connection is not returned to the pool. */
  use<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result>;
  /** Does the work, and repeats it after a lost connection: only for work that changes nothing. */
  retryLost<Result>(work: () => Promise<Result>): Promise<Result>;
  /**
   * Checks on a new connection whether the server accepts writes, and rejects with a read-only refusal if not. If it does, older
   * connections of the pool are closed when they are taken next: each may lead to a server that refuses writes.
   */
  checkWritable(): Promise<void>;
}

export interface PostgresClientsOptions {
  readonly pool: pg.Pool;
  /** Whether a connection leads to the primary; one that does not is closed, not used. */
  readonly isCurrent: (client: pg.PoolClient) => boolean;
  readonly askWritable: () => Promise<void>;
  readonly watch: PostgresWatch;
  readonly world: World;
  /** How many calls may wait for a connection; one more is refused. */
  readonly maxWaiting: number;
}

export function createPostgresClients(options: PostgresClientsOptions): PostgresClients {
  const { pool, isCurrent, askWritable, watch, world, maxWaiting } = options;
  /** The connections opened since the last check that found the server writable again. */
  let fresh = new WeakSet<pg.PoolClient>();
  pool.on('connect', (client) => fresh.add(client));
  const retryLost = <Result>(work: () => Promise<Result>): Promise<Result> =>
    retryWhile(isConnectionLost, RECONNECT_DELAYS_MS, world, work);

  const connect = async (): Promise<pg.PoolClient> => {
    watch.checkPresent();
    if (pool.waitingCount >= maxWaiting)
      throw new Failure('unavailable', 'Cannot use the database: too many calls are waiting', { retryAfterSeconds: 1 });
    const client = await pool.connect().catch((error: unknown) => {
      throw translatePostgresError(error, 'connect');
    });
    if (isCurrent(client) && fresh.has(client)) return client;
    client.release(true);
    return await connect();
  };

  // A call that timed out checks whether the server is gone; if it is, later calls fail at once.
  const reconnect = (): Promise<pg.PoolClient> =>
    retryLost(connect).catch((error: unknown) => {
      if (!isConnectionLost(error)) throw error;
      watch.suspect();
      throw refuseWhileAway(error);
    });

  return {
    retryLost,
    async checkWritable() {
      watch.checkPresent();
      await askWritable().catch((error: unknown) => {
        throw translatePostgresError(error, 'look for writes');
      });
      fresh = new WeakSet();
    },
    async use(work) {
      const client = await reconnect();
      let isLost = false;
      try {
        return await watch.guard(client, () => work(client));
      } catch (error) {
        isLost = isConnectionLost(error);
        throw error;
      } finally {
        client.release(isLost);
      }
    },
  };
}
