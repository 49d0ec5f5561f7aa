import pg from 'pg';
import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** A statement that runs longer is ended by the server: a lock that it holds would stop everyone else. */
const STATEMENT_TIMEOUT_MS = 60_000;

function describeConnection(databaseUrl: string): pg.ClientConfig {
  return {
    connectionString: databaseUrl,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'trivet',
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
    types: { getTypeParser },
  };
}

/** Connects, asks for nothing in particular and ends. */
export async function askPostgres(databaseUrl: string): Promise<void> {
  const client = new pg.Client(describeConnection(databaseUrl));
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('SELECT 1');
  } finally {
    void client.end().catch(() => {});
  }
}

/** A pool whose connections answer in the types of store.ts, and whose losses are reported, never thrown. */
export function createPostgresPool(databaseUrl: string, poolSize: number, log: Log): pg.Pool {
  const pool = new pg.Pool({ ...describeConnection(databaseUrl), max: poolSize });
  pool.on('error', (error) => log.warn({ err: error }, 'a connection to PostgreSQL was lost'));
  // The pool handles errors of idle connections only; an error of a connection in use would end the process.
  pool.on('connect', (client) => {
    client.on('error', () => {});
  });
  return pool;
}

type Parser = (value: string) => unknown;

const PARSERS: Readonly<Record<number, Parser>> = {
  16: (value) => (value === 't' ? 1 : 0),
  17: parseBytes,
  20: parseInteger,
  21: Number,
  23: Number,
  700: Number,
  701: Number,
  // What SUM and AVG of integers are.
  1700: Number,
};

function getTypeParser(oid: number): Parser {
  return PARSERS[oid] ?? ((value) => value);
}

function parseInteger(value: string): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new RangeError(`Value is too large to be represented as a JavaScript number: ${value}`);
}

function parseBytes(value: string): Uint8Array {
  return new Uint8Array(Buffer.from(value.slice(2), 'hex'));
}

/** The server undid everything and asks for another try: a serialization failure or a deadlock. */
export function isRetryable(error: unknown): boolean {
  const { code } = causeOf(error);
  return code === '40001' || code === '40P01';
}

/** The connection is gone or could not be had: the server stops, starts or is out of connections, or the network broke. */
export function isConnectionLost(error: unknown): boolean {
  const { code, message } = causeOf(error);
  if (code !== undefined) return /^(08...|53300|57P0[1-4]|25P03|25006|E[A-Z]+)$/.test(code);
  return /^(Connection terminated|Client has encountered a connection error)/.test(message ?? '');
}

interface DriverError {
  readonly code?: string;
  readonly message?: string;
}

function causeOf(error: unknown): DriverError {
  return ((error instanceof Failure ? error.cause : error) ?? {}) as DriverError;
}

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
  if (code === '57014') return new Failure('deadline', 'Cannot use the database: it took too long', {}, options);
  if (isRetryable(error) || isConnectionLost(error) || code.startsWith('53') || message.startsWith('timeout exceeded'))
    return new Failure('unavailable', 'Cannot use the database right now', { retryAfterSeconds: 1 }, options);
  return new Failure('internal', `Cannot run "${what}" on the database`, {}, options);
}
