/**
 * Distinguishes a slow PostgreSQL server from a lost one, so that queries do not hang. When the server's machine stops or the
 * network drops packets, connections stay open and nothing answers, so a query would wait for ever. When a query has waited long, a
 * separate connection checks whether the server answers; if not, all waiting queries fail. Until the server answers again, every
 * call is refused at once instead of queued.
 */
import type pg from 'pg';
import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import { isConnectionLost } from './postgres-pool.ts';

export interface PostgresWatch {
  /** Throws `unavailable` while the server is away. */
  checkPresent(): void;
  /** Runs one or more queries of a connection, and ends them when the server does not answer. */
  guard<Result>(client: pg.PoolClient, work: () => Promise<Result>): Promise<Result>;
  /** Must be called when connections are lost or refused: checks now whether the server answers. */
  suspect(): void;
  close(): void;
}

export interface PostgresWatchOptions {
  /** Connects, runs a query and disconnects; rejects when that failed. */
  readonly ask: () => Promise<void>;
  /** False for a connection to a host that is no longer the primary, where a query would wait in vain. */
  readonly isCurrent: (client: pg.PoolClient) => boolean;
  readonly log: Log;
  readonly world: World;
}

const LOOK_EVERY_MS = 1000;
/** After this long, a query causes a check of the server; most such queries are only slow. */
const LONG_MS = 3000;
const ANSWER_WITHIN_MS = 3000;
/** Answers that arrived while this process was busy are read before a query counts as late. */
const READ_MS = 250;

export function createPostgresWatch({ ask, isCurrent, log, world }: PostgresWatchOptions): PostgresWatch {
  const startMsByClient = new Map<pg.PoolClient, number>();
  let isAway = false;
  let isAsking = false;
  let answeredAtMs = world.monotonicMs();

  const isLong = (startMs: number): boolean => world.monotonicMs() - Math.max(startMs, answeredAtMs) > LONG_MS;

  const look = (): void => {
    // The oldest is the first: a map keeps the order of insertion.
    const [oldestMs] = startMsByClient.values();
    if (isAway || (oldestMs !== undefined && isLong(oldestMs))) void inquire();
  };

  const inquire = async (): Promise<void> => {
    if (isAsking) return;
    isAsking = true;
    const isThere = await Promise.race([ask().then(() => true, isAnswer), waitLong()]);
    isAsking = false;
    if (isThere) welcome();
    else dismiss();
  };

  const waitLong = async (): Promise<false> => {
    await world.sleep(ANSWER_WITHIN_MS);
    await world.sleep(READ_MS);
    return false;
  };

  const welcome = (): void => {
    answeredAtMs = world.monotonicMs();
    if (isAway) log.warn('PostgreSQL answers again');
    isAway = false;
    for (const client of startMsByClient.keys()) if (!isCurrent(client)) breakConnection(client);
  };

  const dismiss = (): void => {
    if (!isAway) log.error({ waiting: startMsByClient.size }, 'PostgreSQL does not answer');
    isAway = true;
    for (const client of startMsByClient.keys()) breakConnection(client);
  };

  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  return {
    checkPresent: () => {
      if (isAway) throw refuseWhileAway();
    },
    guard: async (client, work) => {
      startMsByClient.set(client, world.monotonicMs());
      try {
        return await work();
      } finally {
        startMsByClient.delete(client);
      }
    },
    suspect: () => void inquire(),
    close: () => clearInterval(timer),
  };
}

export function refuseWhileAway(cause?: unknown): Failure {
  return new Failure('unavailable', 'Cannot use the database right now', { retryAfterSeconds: 1 }, { cause });
}

/** A refusal is an answer too, unless the server is starting or stopping. */
function isAnswer(error: unknown): boolean {
  const TOO_MANY_CONNECTIONS = '53300';
  return !isConnectionLost(error) || (error as { code?: string }).code === TOO_MANY_CONNECTIONS;
}

/** `end` closes the socket even while a query is running; the query fails as with any lost connection. */
function breakConnection(client: pg.PoolClient): void {
  void (client as unknown as pg.Client).end().catch(() => {});
}
