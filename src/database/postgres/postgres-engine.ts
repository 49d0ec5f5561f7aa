import type pg from 'pg';
import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import type { Engine } from '../engine.ts';
import { createInFlight } from '../in-flight.ts';
import { createTurns } from '../named-turns.ts';
import { checkParameters } from '../portable-sql.ts';
import { runProcedure } from '../procedure-run.ts';
import type { BoundStatement, Isolation, Procedure, Row, SqlValue, Statement } from '../store.ts';
import { createPostgresClients, type PostgresClients } from './postgres-clients.ts';
import {
  isConnectionLost,
  isRefusedUndone,
  isRetryable,
  openPostgresConnections,
  translatePostgresError,
  wasLeftUnreplicated,
} from './postgres-pool.ts';
import { createPostgresWatch, type PostgresWatch } from './postgres-watch.ts';
import { retryWhile } from './retry-while.ts';

export interface PostgresOptions {
  readonly databaseUrl: string;
  readonly poolSize: number;
  readonly log: Log;
  readonly world: World;
  /** Calls that may wait for a connection; one more is refused. */
  readonly maxWaiting?: number;
}

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
  const { pool, ask, isCurrent, isPrepared } = openPostgresConnections(databaseUrl, poolSize, log);
  const watch = createPostgresWatch({ ask, isCurrent, log, world });
  const clients = createPostgresClients({ pool, isCurrent, watch, world, maxWaiting });
  const run = createRunner(isPrepared);
  // A pool that is ended forgets the calls that wait for a connection, so it is ended after them.
  const inFlight = createInFlight();
  let closing: Promise<void> | undefined;

  const begin = <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (closing === undefined) return inFlight.track(work);
    return Promise.reject(new Failure('unavailable', 'Cannot use the database: it is closed'));
  };
  // Sent again when its connection breaks: it changes nothing.
  const read = (statement: Statement<object>, parameters: readonly SqlValue[]): Promise<Row[]> =>
    begin(() => clients.retryLost(() => clients.use((client) => run(client, statement, parameters))));
  const { transact, transactInTurn } = createTransactions(clients, world);

  return {
    name: 'postgres',
    pool,
    read,
    readCached: read,
    writeAll: (statements) => begin(() => transact((client) => runStatements(run, client, statements))),
    call: (procedure, input) => {
      const work = (client: pg.PoolClient) => runIsolated(run, client, { procedure, input });
      const isSerializable = procedure.isolation === 'serializable';
      return begin(() => (isSerializable ? transactInTurn(procedure.name, work) : transact(work)));
    },
    mayHaveChanged: () => true,
    countWaiting: () => pool.waitingCount,
    close: () => {
      closing ??= inFlight.settle().then(() => endPool(pool, watch));
      return closing;
    },
  };
}

type Work<Result> = (client: pg.PoolClient) => Promise<Result>;

function createTransactions(clients: PostgresClients, world: World) {
  // Calls of one procedure that conflict would continue to do so: after the first conflict they run one after the other.
  const turns = createTurns();
  // Sent again only when it is certain that nothing was stored.
  const transact = <Result>(work: Work<Result>): Promise<Result> =>
    retryWhile(isUndone, listConflictDelays(world), world, () => clients.use(work));
  const transactInTurn = async <Result>(name: string, work: Work<Result>): Promise<Result> => {
    if (!turns.isTaken(name))
      try {
        return await clients.use(work);
      } catch (error) {
        if (!isUndone(error)) throw error;
      }
    return await turns.take(name, () => transact(work));
  };
  return { transact, transactInTurn };
}

/** Runs one statement of the program. */
type Runner = (client: pg.PoolClient, statement: Statement<object>, parameters: readonly SqlValue[]) => Promise<Row[]>;

function createRunner(isPrepared: boolean): Runner {
  return async (client, { name, text }, parameters) => {
    const query = { text, values: parameters as SqlValue[] };
    try {
      const result = await client.query<Row>(isPrepared ? { name, ...query } : query);
      return result.rows;
    } catch (error) {
      throw translatePostgresError(error, name);
    }
  };
}

interface Order<Input, Result> {
  readonly procedure: Procedure<Input, Result>;
  readonly input: Input;
}

function runIsolated<Input, Result>(
  run: Runner,
  client: pg.PoolClient,
  { procedure, input }: Order<Input, Result>,
): Promise<Result> {
  return inTransaction(client, procedure.isolation, () =>
    runProcedure(procedure, input, async (statement, parameters) => {
      checkParameters(statement.name, parameters);
      return await run(client, statement, parameters);
    }),
  );
}

async function runStatements(
  run: Runner,
  client: pg.PoolClient,
  statements: readonly BoundStatement[],
): Promise<Row[][]> {
  const only = statements[0];
  if (statements.length === 1 && only !== undefined)
    return await guardOutcome(client, async () => [await run(client, only.statement, only.parameters)]);
  return await inTransaction(client, 'read committed', async () => {
    const results: Row[][] = [];
    for (const { statement, parameters } of statements) results.push(await run(client, statement, parameters));
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
  await guardOutcome(client, () => commit(client));
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
async function guardOutcome<Result>(client: pg.PoolClient, work: () => Promise<Result>): Promise<Result> {
  try {
    const result = await work();
    if (wasLeftUnreplicated(client)) throw unknownOutcome('no standby has confirmed it');
    return result;
  } catch (error) {
    if (!isConnectionLost(error) || isRefusedUndone(error)) throw error;
    throw unknownOutcome('the connection to the database was lost', (error as Failure).cause);
  }
}

function unknownOutcome(reason: string, cause?: unknown): Failure {
  const details = { isUnknown: true, retryAfterSeconds: 1 };
  return new Failure('unavailable', `The outcome of the write is unknown: ${reason}`, details, { cause });
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
