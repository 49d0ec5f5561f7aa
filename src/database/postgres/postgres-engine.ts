import type pg from 'pg';
import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import type { Engine } from '../engine.ts';
import { createInFlight } from '../in-flight.ts';
import { checkParameters } from '../portable-sql.ts';
import { runProcedure } from '../procedure-run.ts';
import type { Isolation, Row, SqlValue, Statement, Step } from '../store.ts';
import { createTurns } from '../turns.ts';
import {
  askPostgres,
  createPostgresPool,
  isConnectionLost,
  isRetryable,
  translatePostgresError,
} from './postgres-pool.ts';
import { createPostgresWatch, type PostgresWatch, refuseWhileAway } from './postgres-watch.ts';

export interface PostgresOptions {
  readonly databaseUrl: string;
  readonly poolSize: number;
  readonly log: Log;
  readonly world: World;
  /** Calls that may wait for a connection; one more is refused. */
  readonly maxWaiting?: number;
}

/** Waits before a lost connection is tried again. Together they outlast a quick restart of the server. */
const RECONNECT_DELAYS_MS = [20, 100, 400, 1_000, 2_500];
/** How long the end of a program waits for a server to take leave; all that mattered is stored by then. */
const LEAVE_MS = 2_000;
/** Of two transactions in conflict one commits, so tries come to an end; together these wait 12 s on average. */
const MAX_CONFLICTS = 100;
const MAX_CONFLICT_DELAY_MS = 250;
const DEFAULT_MAX_WAITING = 20_000;

export interface PostgresEngine extends Engine {
  readonly pool: pg.Pool;
}

export function openPostgresEngine(options: PostgresOptions): PostgresEngine {
  const { databaseUrl, poolSize, log, world, maxWaiting = DEFAULT_MAX_WAITING } = options;
  const pool = createPostgresPool(databaseUrl, poolSize, log);
  // A pool that is ended forgets the calls that wait for a connection, so it is ended after them.
  const inFlight = createInFlight();
  const watch = createPostgresWatch({ ask: () => askPostgres(databaseUrl), log, world });
  let closing: Promise<void> | undefined;

  const begin = <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (closing === undefined) return inFlight.track(work);
    return Promise.reject(new Failure('unavailable', 'Cannot use the database: it is closed'));
  };

  const connect = async (): Promise<pg.PoolClient> => {
    watch.checkPresent();
    if (pool.waitingCount >= maxWaiting)
      throw new Failure('unavailable', 'Cannot use the database: too many calls are waiting', { retryAfterSeconds: 1 });
    return await pool.connect().catch((error: unknown) => {
      throw translatePostgresError(error, 'connect');
    });
  };

  // A call that timed out probes whether the server is gone; if so, later calls fail without waiting.
  const reconnect = (): Promise<pg.PoolClient> =>
    retryWhile(isConnectionLost, RECONNECT_DELAYS_MS, world, connect).catch((error: unknown) => {
      if (!isConnectionLost(error)) throw error;
      watch.suspect();
      throw refuseWhileAway(error);
    });

  const useClient = async <Result>(
    client: pg.PoolClient,
    work: (client: pg.PoolClient) => Promise<Result>,
  ): Promise<Result> => {
    let isLost = false;
    try {
      return await watch.guard(client, () => work(client));
    } catch (error) {
      isLost = isConnectionLost(error);
      throw error;
    } finally {
      client.release(isLost);
    }
  };

  // Sent again when its connection breaks: it changes nothing.
  const read = (statement: Statement<object>, parameters: readonly SqlValue[]): Promise<Row[]> =>
    begin(() =>
      retryWhile(isConnectionLost, RECONNECT_DELAYS_MS, world, async () =>
        useClient(await reconnect(), (client) => runOn(client, statement, parameters)),
      ),
    );

  const runOnce = async <Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> =>
    useClient(await reconnect(), work);

  // Sent again only when it is certain that nothing was stored.
  const transact = <Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> =>
    begin(() => retryWhile(isUndone, listConflictDelays(world), world, () => runOnce(work)));

  // Calls of one procedure that conflict would go on to do so: after the first conflict they go one after the other.
  const turns = createTurns();
  const transactInTurn = <Result>(name: string, work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> =>
    begin(async () => {
      if (!turns.isTaken(name))
        try {
          return await runOnce(work);
        } catch (error) {
          if (!isUndone(error)) throw error;
        }
      const tries = () => retryWhile(isUndone, listConflictDelays(world), world, () => runOnce(work));
      return await turns.take(name, tries);
    });

  return {
    name: 'postgres',
    pool,
    read,
    recall: read,
    writeAll: (steps) => transact((client) => runSteps(client, steps)),
    call: (procedure, input) => {
      const work = (client: pg.PoolClient) =>
        inTransaction(client, procedure.isolation, () =>
          runProcedure(procedure, input, async (statement, parameters) => {
            checkParameters(statement.name, parameters);
            return await runOn(client, statement, parameters);
          }),
        );
      return procedure.isolation === 'serializable' ? transactInTurn(procedure.name, work) : transact(work);
    },
    mayHaveChanged: () => true,
    countWaiting: () => pool.waitingCount,
    close: () => {
      closing ??= inFlight.settle().then(() => endPool(pool, watch));
      return closing;
    },
  };
}

async function runOn(
  client: pg.PoolClient,
  statement: Statement<object>,
  parameters: readonly SqlValue[],
): Promise<Row[]> {
  const { name, text } = statement;
  try {
    const result = await client.query<Row>({ name, text, values: parameters as SqlValue[] });
    return result.rows;
  } catch (error) {
    throw translatePostgresError(error, name);
  }
}

async function runSteps(client: pg.PoolClient, steps: readonly Step[]): Promise<Row[][]> {
  const only = steps[0];
  if (steps.length === 1 && only !== undefined)
    return await guardOutcome(async () => [await runOn(client, only.statement, only.parameters)]);
  return await inTransaction(client, 'read committed', async () => {
    const results: Row[][] = [];
    for (const step of steps) results.push(await runOn(client, step.statement, step.parameters));
    return results;
  });
}

async function endPool(pool: pg.Pool, watch: PostgresWatch): Promise<void> {
  watch.close();
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, LEAVE_MS);
  await Promise.race([pool.end(), late.promise]);
  clearTimeout(timer);
}

async function inTransaction<Result>(
  client: pg.PoolClient,
  isolation: Isolation,
  work: () => Promise<Result>,
): Promise<Result> {
  await client.query(`BEGIN ISOLATION LEVEL ${isolation}`).catch((error: unknown) => {
    throw translatePostgresError(error, 'begin');
  });
  const result = await work().catch(async (error: unknown) => {
    // When it fails the connection is gone, and the server rolls back by itself; the pool sees that it is gone.
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  });
  await guardOutcome(() => commit(client));
  return result;
}

async function commit(client: pg.PoolClient): Promise<void> {
  const { command } = await client.query('COMMIT').catch((error: unknown) => {
    throw translatePostgresError(error, 'commit');
  });
  // What a COMMIT answers in a transaction that had failed.
  if (command === 'ROLLBACK') throw new Failure('internal', 'Cannot commit: the transaction had failed');
}

// When the connection breaks in the middle of a commit, its outcome is unknown.
async function guardOutcome<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!isConnectionLost(error)) throw error;
    const message = 'The outcome of the write is unknown: the connection to the database was lost';
    const cause = (error as Failure).cause;
    throw new Failure('unavailable', message, { isUnknown: true, retryAfterSeconds: 1 }, { cause });
  }
}

/** The server said that it undid everything, or the connection broke before the commit was sent. */
function isUndone(error: unknown): boolean {
  return isRetryable(error) || (isConnectionLost(error) && (error as Failure).details?.isUnknown !== true);
}

/** Growing, and different for each, so that those who collided do not collide again. */
function* listConflictDelays(world: World): Generator<number> {
  for (let attempt = 0; attempt < MAX_CONFLICTS; attempt += 1)
    yield world.random() * Math.min(MAX_CONFLICT_DELAY_MS, 2 ** attempt * 2);
}

async function retryWhile<Result>(
  isTransient: (error: unknown) => boolean,
  delaysMs: Iterable<number>,
  world: World,
  work: () => Promise<Result>,
): Promise<Result> {
  for (const delayMs of delaysMs) {
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error)) throw error;
      await world.sleep(delayMs);
    }
  }
  return await work();
}
