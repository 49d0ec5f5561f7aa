/** Opens client connections to PostgreSQL, and tries again after delays when the server is away. */
import type pg from 'pg';
import { Failure } from '../../errors.ts';
import type { World } from '../../world.ts';
import { isConnectionLost, translatePostgresError } from './postgres-pool.ts';
import { type PostgresWatch, refuseWhileAway } from './postgres-watch.ts';
import { retryWhile } from './retry-while.ts';

/** Waits before a lost connection is tried again. Together they outlast a quick restart of the server. */
export const RECONNECT_DELAYS_MS = [20, 100, 400, 1_000, 2_500];

export interface PostgresClients {
  /** Does the work on a connection of its own. A lost connection is not returned to the pool. */
  use<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result>;
  /** Does the work again while its connection is lost: for work that changes nothing. */
  retryLost<Result>(work: () => Promise<Result>): Promise<Result>;
  /**
   * Asks on a new connection whether the server accepts writes, and rejects with a read-only refusal if not. If so, the connections
   * of the pool that are older than the answer are closed when their turn comes: each may lead to a server that refuses.
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
  /** Calls that may wait for a connection; one more is refused. */
  readonly maxWaiting: number;
}

export function createPostgresClients(options: PostgresClientsOptions): PostgresClients {
  const { pool, isCurrent, askWritable, watch, world, maxWaiting } = options;
  /** Connections that were opened since the server was last found to accept writes again. */
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

  // A call that timed out probes whether the server is gone; if so, later calls fail without waiting.
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
