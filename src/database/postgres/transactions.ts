/**
 * Decides whether a PostgreSQL transaction is retried after a serialization conflict, a deadlock or a lost connection. It is sent
 * again only when nothing of it was stored for certain. After a conflict it is retried often, since one of two in conflict commits;
 * after a lost connection or the refusal of a server that accepts no writes, only as long as a failover behind a proxy takes. If the
 * server still refuses then, it counts as read-only: every transaction is refused immediately until a new connection to it accepts
 * writes; reads are still sent. With several hosts, a new connection to a read-only server fails by itself, so such a server counts as
 * away instead.
 */
import type pg from 'pg';
import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import { createSerialByName } from '../serial-by-name.ts';
import { type PostgresClients, RECONNECT_DELAYS_MS } from './postgres-clients.ts';
import { isConnectionLost, isReadOnlyRefusal, isRetryable } from './postgres-pool.ts';
import { retryWhile } from './retry-while.ts';

/** The most tries after conflicts: one of two in conflict commits, so they end. All waits together are 12 s on average. */
const MAX_CONFLICTS = 100;
const MAX_CONFLICT_DELAY_MS = 250;
/** The least time between two checks of whether a read-only server accepts writes again. */
const LOOK_EVERY_MS = 500;

type Work<Result> = (client: pg.PoolClient) => Promise<Result>;

export interface Transactions {
  readonly transact: <Result>(work: Work<Result>) => Promise<Result>;
  /** Transactions of one name that conflict would conflict again: after the first conflict they run one after the other. */
  readonly transactInTurn: <Result>(name: string, work: Work<Result>) => Promise<Result>;
}

export interface TransactionsDependencies {
  readonly clients: PostgresClients;
  readonly world: World;
  readonly log: Log;
}

export function createTransactions({ clients, world, log }: TransactionsDependencies): Transactions {
  const serial = createSerialByName();
  const writability = createWritability(world, log);
  const send = <Result>(work: Work<Result>): Promise<Result> =>
    retryWhile(isRetryable, listConflictDelays(world), world, () => clients.use(work));
  const sendWhileLost = <Result>(work: Work<Result>): Promise<Result> =>
    retryWhile(isLostUndone, RECONNECT_DELAYS_MS, world, () => send(work));
  const sendOnceWritable = async <Result>(work: Work<Result>): Promise<Result> => {
    writability.checkTurn();
    await clients.checkWritable();
    writability.record(true);
    return await sendWhileLost(work);
  };

  const transact = async <Result>(work: Work<Result>): Promise<Result> => {
    try {
      return await (writability.isReadOnly ? sendOnceWritable(work) : sendWhileLost(work));
    } catch (error) {
      if (!isReadOnlyRefusal(error)) throw error;
      writability.record(false);
      throw refuseWrite(error);
    }
  };
  const transactInTurn = async <Result>(name: string, work: Work<Result>): Promise<Result> => {
    if (!serial.isBusy(name) && !writability.isReadOnly)
      try {
        return await clients.use(work);
      } catch (error) {
        if (!isRetryable(error) && !isLostUndone(error)) throw error;
      }
    return await serial.run(name, () => transact(work));
  };
  return { transact, transactInTurn };
}

/** Whether the server accepts writes, according to the last transactions. */
interface Writability {
  readonly isReadOnly: boolean;
  /** Throws `unavailable` while it is too early to check a read-only server again. */
  checkTurn(): void;
  record(isWritable: boolean): void;
}

function createWritability(world: Pick<World, 'monotonicMs'>, log: Log): Writability {
  let isReadOnly = false;
  let askedMs = 0;
  return {
    get isReadOnly() {
      return isReadOnly;
    },
    checkTurn: () => {
      if (world.monotonicMs() - askedMs < LOOK_EVERY_MS) throw refuseWrite();
      askedMs = world.monotonicMs();
    },
    record: (isWritable) => {
      if (isWritable && isReadOnly) log.warn('PostgreSQL accepts writes again');
      if (!isWritable && !isReadOnly) log.error('PostgreSQL accepts no writes: it is read-only or a standby');
      isReadOnly = !isWritable;
      askedMs = world.monotonicMs();
    },
  };
}

function refuseWrite(cause?: unknown): Failure {
  const message = 'Cannot use the database right now: it accepts no writes';
  return new Failure('unavailable', message, { retryAfterSeconds: 1 }, { cause });
}

/** The connection broke before the commit was sent, or the server refused before it did anything. */
function isLostUndone(error: unknown): boolean {
  return isConnectionLost(error) && (error as Failure).details?.isUnknown !== true;
}

/** Exponential with jitter, so that transactions that collided do not collide again. */
function* listConflictDelays(world: World): Generator<number> {
  for (let attempt = 0; attempt < MAX_CONFLICTS; attempt += 1)
    yield world.random() * Math.min(MAX_CONFLICT_DELAY_MS, 2 ** attempt * 2);
}
