/** Implements the store on PostgreSQL: grouped reads, transactions and procedures. */
import type pg from 'pg';
import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import type { Engine } from '../engine.ts';
import { createInFlight } from '../in-flight.ts';
import { checkParameters } from '../portable-sql.ts';
import { runProcedure } from '../procedure-run.ts';
import type { BoundStatement, Isolation, Procedure, Row } from '../store.ts';
import { createPostgresClients } from './postgres-clients.ts';
import { isConnectionLost, isRefusedUndone, openPostgresConnections, wasLeftUnreplicated } from './postgres-pool.ts';
import { createPostgresWatch, type PostgresWatch } from './postgres-watch.ts';
import { createReadGroup } from './read-group.ts';
import { createServerClock, type ServerClock } from './server-clock.ts';
import { runBatch, type StatementAnswer } from './statement-batch.ts';
import { waitForTurnStatement } from './transaction-turn.ts';
import { createTransactions } from './transactions.ts';

export interface PostgresOptions {
  readonly databaseUrl: string;
  readonly poolSize: number;
  readonly log: Log;
  readonly world: World;
  /** How many calls may wait for a connection; one more is refused. */
  readonly maxWaiting?: number;
}

/** How long the end of a program waits for the server to close its connections; all data is stored by then. */
const LEAVE_MS = 2_000;
const DEFAULT_MAX_WAITING = 20_000;

export interface PostgresEngine extends Engine {
  readonly pool: pg.Pool;
  readonly clock: ServerClock;
}

export function openPostgresEngine(options: PostgresOptions): PostgresEngine {
  const { databaseUrl, poolSize, log, world, maxWaiting = DEFAULT_MAX_WAITING } = options;
  const { pool, ask, askWritable, isCurrent, isPrepared } = openPostgresConnections(databaseUrl, poolSize, log);
  const watch = createPostgresWatch({ ask, isCurrent, log, world });
  const clients = createPostgresClients({ pool, isCurrent, askWritable, watch, world, maxWaiting });
  // On a watched connection: otherwise a server that does not answer would occupy connections of the pool.
  const clock = createServerClock({ askMs: () => clients.use((client) => askClock(run, client)), world, log });
  const run: Runner = (client, statements) => runBatch(client, statements, { isPrepared });
  // An ended pool drops calls that wait for a connection, so it is ended after they are done.
  const inFlight = createInFlight();
  let closing: Promise<void> | undefined;

  const begin = <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (closing === undefined) return inFlight.track(work);
    return Promise.reject(new Failure('unavailable', 'Cannot use the database: it is closed'));
  };
  // Repeated after a lost connection: it changes nothing.
  const readAll = (statements: readonly BoundStatement[]): Promise<Row[][]> =>
    begin(() => clients.retryLost(() => clients.use(async (client) => (await run(client, statements)).map(rowsOf))));
  const readGroup = createReadGroup(readAll);
  const { transact, transactInTurn } = createTransactions({ clients, world, log });

  return {
    name: 'postgres',
    pool,
    clock,
    clockAheadMs: () => clock.aheadMs,
    read: async (statement, parameters) => (await readAll([{ statement, parameters }]))[0]!,
    readAll,
    readCached: (statement, parameters) => readGroup.read(statement, parameters),
    writeAll: (statements, { inOneTrip, turn } = {}) => {
      const first = turn === undefined ? [] : [waitForTurnStatement(turn)];
      const all = [...first, ...statements];
      const runAll = inOneTrip && all.length > 1 ? runInOneTrip : runStatements;
      return begin(async () => (await transact((client) => runAll(run, client, all))).slice(first.length));
    },
    call: (procedure, input) => {
      const work = (client: pg.PoolClient) => runIsolated(run, client, { procedure, input });
      const isSerializable = procedure.isolation === 'serializable';
      return begin(() => (isSerializable ? transactInTurn(procedure.name, work) : transact(work)));
    },
    mayHaveChanged: () => true,
    countWaiting: () => pool.waitingCount,
    close: () => {
      clock.close();
      closing ??= inFlight.settle().then(() => endPool(pool, watch));
      return closing;
    },
  };
}

/** Runs statements of the program in one round trip. */
type Runner = (client: pg.PoolClient, statements: readonly BoundStatement[]) => Promise<StatementAnswer[]>;

async function askClock(run: Runner, client: pg.PoolClient): Promise<number> {
  const [answer] = await run(client, [CLOCK]);
  return Number(answer?.rows[0]?.now_ms);
}

function rowsOf({ rows }: StatementAnswer): Row[] {
  return rows;
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
  return inTransaction(run, { client, isolation: procedure.isolation }, (runInside) =>
    runProcedure(procedure, input, async (statements) => {
      for (const { statement, parameters } of statements) checkParameters(statement.name, parameters);
      return await runInside(statements);
    }),
  );
}

async function runStatements(
  run: Runner,
  client: pg.PoolClient,
  statements: readonly BoundStatement[],
): Promise<Row[][]> {
  if (statements.length === 1)
    return await guardOutcome(client, async () => (await run(client, statements)).map(rowsOf));
  return await inTransaction(run, { client, isolation: 'read committed' }, (runInside) => runInside(statements));
}

async function runInOneTrip(
  run: Runner,
  client: pg.PoolClient,
  statements: readonly BoundStatement[],
): Promise<Row[][]> {
  return await guardOutcome(client, async () => {
    try {
      const answers = await run(client, [BEGIN['read committed'], ...statements, COMMIT]);
      checkCommitted(answers.at(-1));
      return answers.slice(1, -1).map(rowsOf);
    } catch (error) {
      // The server has skipped all statements after the failed one, the commit included.
      await run(client, [ROLLBACK]).catch(() => {});
      throw error;
    }
  });
}

async function endPool(pool: pg.Pool, watch: PostgresWatch): Promise<void> {
  watch.close();
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, LEAVE_MS);
  await Promise.race([pool.end(), late.promise]);
  clearTimeout(timer);
}

const BEGIN: { readonly [K in Isolation]: BoundStatement } = {
  'read committed': describeControl('begin', 'BEGIN ISOLATION LEVEL READ COMMITTED'),
  serializable: describeControl('begin_serializable', 'BEGIN ISOLATION LEVEL SERIALIZABLE'),
};
const CLOCK = describeControl('clock', 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms');
const COMMIT = describeControl('commit', 'COMMIT');
const ROLLBACK = describeControl('rollback', 'ROLLBACK');

function describeControl(name: string, text: string): BoundStatement {
  return { statement: { name: `trivet_${name}`, text }, parameters: [] };
}

interface TransactionPlace {
  readonly client: pg.PoolClient;
  readonly isolation: Isolation;
}

/** The transaction begins with the first statements, in one round trip. */
async function inTransaction<Result>(
  run: Runner,
  { client, isolation }: TransactionPlace,
  work: (runInside: (statements: readonly BoundStatement[]) => Promise<Row[][]>) => Promise<Result>,
): Promise<Result> {
  let begin: BoundStatement | undefined = BEGIN[isolation];
  const runInside = async (statements: readonly BoundStatement[]): Promise<Row[][]> => {
    const first = begin === undefined ? [] : [begin];
    begin = undefined;
    const answers = await run(client, [...first, ...statements]);
    return answers.slice(first.length).map(rowsOf);
  };
  const result = await work(runInside).catch(async (error: unknown) => {
    // If the rollback fails, the connection is gone: the server rolls back by itself, and the pool notices the loss.
    if (begin === undefined) await run(client, [ROLLBACK]).catch(() => {});
    throw error;
  });
  if (begin === undefined) await guardOutcome(client, () => commit(run, client));
  return result;
}

async function commit(run: Runner, client: pg.PoolClient): Promise<void> {
  const [answer] = await run(client, [COMMIT]);
  checkCommitted(answer);
}

function checkCommitted(answer: StatementAnswer | undefined): void {
  // COMMIT answers `ROLLBACK` in a transaction that had failed.
  if (answer?.command === 'ROLLBACK') throw new Failure('internal', 'Cannot commit: the transaction had failed');
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
