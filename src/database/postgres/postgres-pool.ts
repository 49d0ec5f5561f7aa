/** Runs the pool of PostgreSQL connections, and decides which errors mean a lost connection. */
import pg from 'pg';
import { describeError, Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import { findParser } from './column-parsers.ts';
import { parseDatabaseUrl } from './database-url.ts';
import { checkWritable, createPrimaryFinder, type PrimaryFinder } from './primary-finder.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** The connect timeout with several hosts, which is shorter: another host may be the primary now. */
const HOST_CONNECT_TIMEOUT_MS = 3_000;
/** The server ends a statement that runs longer: the locks that it holds would stop all other calls. */
const STATEMENT_TIMEOUT_MS = 60_000;
/**
 * The server ends a transaction that waits this long for its next statement: its process has stopped or is cut off, and others
 * wait for its locks. A healthy one takes milliseconds between two statements.
 */
const IDLE_TRANSACTION_TIMEOUT_MS = 10_000;

export interface PostgresConnections {
  readonly pool: pg.Pool;
  /** False behind a pooler that hands each transaction another connection. */
  readonly isPrepared: boolean;
  /** Connects, runs `SELECT 1` and disconnects; with several hosts, searches the one that accepts writes. */
  readonly ask: () => Promise<void>;
  /** Does the same, and rejects with a read-only refusal unless the server accepts writes. */
  readonly askWritable: () => Promise<void>;
  /** Whether a connection leads to the host that is the primary now, as far as known. */
  readonly isCurrent: (client: pg.ClientBase) => boolean;
}

/** Creates a pool whose connections answer in the types of store.ts, and whose lost connections are logged, never thrown. */
export function openPostgresConnections(databaseUrl: string, poolSize: number, log: Log): PostgresConnections {
  const { connectionString, hosts, isPrepared } = parseDatabaseUrl(databaseUrl);
  const config = describeConnection(connectionString);
  const finder = hosts.length === 0 ? undefined : createPrimaryFinder(hosts, config);
  const Client = finder === undefined ? pg.Client : createPrimaryClient(finder);
  const pool = new pg.Pool({ ...config, max: poolSize, Client });
  // Only the reason is logged: the driver adds the whole state of the connection to the error.
  pool.on('error', (error) => log.warn({ reason: describeError(error) }, 'A connection to PostgreSQL was lost'));
  pool.on('connect', listenTo);
  return {
    pool,
    isPrepared,
    ask: async () => void (await (finder === undefined ? ask(config) : finder.search())),
    askWritable: async () => void (await (finder === undefined ? ask(config, checkWritable) : finder.search())),
    isCurrent: (client) => finder?.isCurrent(client as pg.Client) ?? true,
  };
}

function describeConnection(connectionString: string): pg.ClientConfig {
  return {
    connectionString,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'trivet',
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT_MS,
    types: { getTypeParser: findParser },
  };
}

async function ask(config: pg.ClientConfig, question: (client: pg.Client) => Promise<unknown> = ping): Promise<void> {
  const client = new pg.Client({ ...config, query_timeout: CONNECT_TIMEOUT_MS });
  client.on('error', () => {});
  try {
    await client.connect();
    await question(client);
  } finally {
    void client.end().catch(() => {});
  }
}

function ping(client: pg.Client): Promise<unknown> {
  return client.query('SELECT 1');
}

/** The pool creates its connections from a class: this one connects to the current primary. */
function createPrimaryClient(finder: PrimaryFinder): typeof pg.Client {
  return class extends pg.Client {
    constructor(config: pg.ClientConfig) {
      super({ ...config, connectionTimeoutMillis: HOST_CONNECT_TIMEOUT_MS });
    }

    override connect(): Promise<pg.Client>;
    override connect(callback: (error: Error) => void): void;
    override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
      const connected = this.connectToPrimary();
      if (callback === undefined) return connected;
      // The driver calls back with null when it has connected.
      connected.then(() => callback(null as unknown as Error), callback);
      return undefined;
    }

    private async connectToPrimary(): Promise<pg.Client> {
      const primary = await finder.find();
      try {
        Object.assign(this, primary);
        await super.connect();
        await checkWritable(this);
        return this;
      } catch (error) {
        finder.forget(primary);
        void this.end().catch(() => {});
        throw error;
      }
    }
  };
}

/** Connections with a commit that the server acknowledged although no standby confirmed it. */
const unreplicated = new WeakSet<pg.ClientBase>();

function listenTo(client: pg.ClientBase): void {
  // The pool handles errors of idle connections only; an error of a connection in use would end the process.
  client.on('error', () => {});
  // With synchronous replication a commit waits for a standby. When that wait is cancelled, by the time limit of a
  // statement or by an operator, PostgreSQL warns and then acknowledges the commit all the same.
  client.on('notice', (notice) => {
    if (notice.routine === 'SyncRepWaitForLSN') unreplicated.add(client);
  });
}

/** Whether the last commit of this connection could be lost with the primary. Must be called once for each commit. */
export function wasLeftUnreplicated(client: pg.ClientBase): boolean {
  return unreplicated.delete(client);
}

/** The server has rolled back and another try may succeed: a serialization failure or a deadlock. */
export function isRetryable(error: unknown): boolean {
  const { code } = causeOf(error);
  return code === '40001' || code === '40P01';
}

/** The connection was lost or could not be opened: the server stops, starts or has no free connection, or the network failed. */
export function isConnectionLost(error: unknown): boolean {
  const { code, message } = causeOf(error);
  if (isReadOnlyRefusal(error)) return true;
  if (code !== undefined) return /^(08...|53300|57P0[1-5]|25P03|E[A-Z_]+)$/.test(code);
  return /^(Connection terminated|timeout expired|Query read timeout|Client (has encountered|was closed))/.test(
    message ?? '',
  );
}

/** The server refused before it did anything: it is a standby, or has no free connection. */
export function isRefusedUndone(error: unknown): boolean {
  return isReadOnlyRefusal(error) || ['53300', '57P03'].includes(causeOf(error).code ?? '');
}

/**
 * The server accepts no writes: by its configuration, or as a standby, which it may remain some time after its promotion was announced.
 * A standby refuses a serializable transaction with a code that it also uses for other refusals. The function that raised the error
 * tells them apart; messages may be translated.
 */
export function isReadOnlyRefusal(error: unknown): boolean {
  const { code, routine = '' } = causeOf(error);
  if (code === '25006') return true;
  return code === '0A000' && ['call_enum_check_hook', 'GetSerializableTransactionSnapshot'].includes(routine);
}

interface DriverError {
  readonly code?: string;
  readonly message?: string;
  /** The function of the server's code that raised the error. */
  readonly routine?: string;
}

function causeOf(error: unknown): DriverError {
  return ((error instanceof Failure ? error.cause : error) ?? {}) as DriverError;
}

const PREPARED_HINT =
  'prepared statements do not stay with their connection; ' +
  'behind PgBouncer in transaction mode add "?prepared_statements=false" to DATABASE_URL';

export function translatePostgresError(error: unknown, what: string): Failure {
  const options = { cause: error };
  const { code = '', message = '' } = error as DriverError;
  if (code === '23505')
    return new Failure('conflict', 'Cannot write: such a row exists already', { isDuplicate: true }, options);
  if (code === '23503')
    return new Failure(
      'conflict',
      'Cannot write: a row that it belongs to is missing',
      { isMissingParent: true },
      options,
    );
  if (code === '26000' || code === '42P05')
    return new Failure('internal', `Cannot run "${what}" on the database: ${PREPARED_HINT}`, {}, options);
  if (code === '57014') return new Failure('deadline', 'Cannot use the database: it took too long', {}, options);
  if (isRetryable(error) || isConnectionLost(error) || code.startsWith('53') || message.startsWith('timeout exceeded'))
    return new Failure('unavailable', 'Cannot use the database right now', { retryAfterSeconds: 1 }, options);
  return new Failure('internal', `Cannot run "${what}" on the database`, {}, options);
}
