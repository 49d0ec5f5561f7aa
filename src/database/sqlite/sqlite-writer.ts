/** Queues writes for the SQLite writer thread, refuses them when too many wait (503), and restarts the thread when it ends. */
import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { BoundStatement, Procedure, Row, SqlValue } from '../store.ts';
import { createWriterCallers } from './writer-callers.ts';
import { startWriterLink, type WriterLink } from './writer-link.ts';
import { fromWireError, type QueuedWrite, type WriterOutcome } from './writer-protocol.ts';

/** The main thread's side of the writer thread: limits how many writes wait, and restarts the thread when it ends. */
export interface SqliteWriter {
  writeAll(statements: readonly BoundStatement[]): Promise<Row[][]>;
  call<Input, Result>(procedure: Procedure<Input, Result>, input: Input): Promise<Result>;
  countWaiting(): number;
  /** Resolves when all waiting writes are stored and the database is closed. */
  close(): Promise<void>;
}

export interface SqliteWriterOptions {
  readonly path: string;
  readonly log: Log;
  /** The most waiting writes. Further ones are refused, so that memory stays bounded when callers are faster than the disk. */
  readonly maxWaiting?: number;
  readonly maxWaitingBytes?: number;
}

const DEFAULT_MAX_WAITING = 20_000;
const DEFAULT_MAX_WAITING_BYTES = 256 * 1024 * 1024;

export function createSqliteWriter(options: SqliteWriterOptions): SqliteWriter {
  const { path, log, maxWaiting = DEFAULT_MAX_WAITING, maxWaitingBytes = DEFAULT_MAX_WAITING_BYTES } = options;
  const callers = createWriterCallers();
  const logOutage = createOutageLog(log);
  let link: WriterLink | undefined;
  let closing: Promise<void> | undefined;

  const settle = (outcomes: readonly WriterOutcome[]): void => {
    for (const outcome of outcomes) if (callers.settle(outcome)) logOutage(outcome);
    if (callers.count() === 0) link?.rest();
  };

  // The next write starts another thread. Whether the last batch was stored is unknown here.
  const endThread = (cause: Error | undefined): void => {
    link = undefined;
    if (cause !== undefined)
      log.error({ err: cause, waiting: callers.count() }, 'The database writer ended unexpectedly');
    callers.rejectAll(
      new Failure('unavailable', 'Cannot write: the database writer ended', { isUnknown: true }, { cause }),
    );
  };

  const ensureLink = (): WriterLink => {
    link ??= startWriterLink(path, settle, endThread);
    return link;
  };

  const findRefusal = (bytes: number): Failure | undefined => {
    if (closing !== undefined) return new Failure('unavailable', 'Cannot write: the database is closed');
    const isFull =
      callers.count() >= maxWaiting || (callers.count() > 0 && callers.waitingBytes() + bytes > maxWaitingBytes);
    if (!isFull) return undefined;
    return new Failure('unavailable', 'Cannot write: too many writes are waiting', { retryAfterSeconds: 1 });
  };

  const submit = <Result>(
    bytes: number,
    createUnit: (id: number, link: WriterLink) => QueuedWrite,
  ): Promise<Result> => {
    const refusal = findRefusal(bytes);
    if (refusal !== undefined) return Promise.reject(refusal);
    return callers.add<Result>(bytes, (id) => {
      const current = ensureLink();
      current.send(createUnit(id, current));
    });
  };

  return {
    writeAll: (statements) =>
      submit(measureStatements(statements), (id, current) => ({
        id,
        statements: statements.map((one) => [current.define(one.statement), one.parameters.map(compact)] as const),
      })),
    call: ({ module, name }, input) => submit(PROCEDURE_BYTES, (id) => ({ id, module, name, input })),
    countWaiting: () => callers.count(),
    close: () => {
      closing ??= link?.close() ?? Promise.resolve();
      return closing;
    },
  };
}

/** Logs an outage (a full disk, say) once: until it ends every write fails in the same way. */
function createOutageLog(log: Log): (outcome: WriterOutcome) => void {
  let cannotStore = false;
  return (outcome) => {
    const wasOut = cannotStore;
    cannotStore = 'error' in outcome && outcome.error.failure === 'unavailable';
    if (cannotStore && !wasOut && 'error' in outcome)
      log.error({ err: fromWireError(outcome.error) }, 'The database cannot store anything; writes are refused');
    if (wasOut && !cannotStore) log.warn('The database stores again');
  };
}

/** The assumed size of an input: measuring a tree of values would cost more than it is worth. */
const PROCEDURE_BYTES = 1024;

function measureStatements(statements: readonly BoundStatement[]): number {
  let bytes = 0;
  for (const { parameters } of statements)
    for (const value of parameters) bytes += typeof value === 'object' || typeof value === 'string' ? sizeOf(value) : 8;
  return bytes;
}

function sizeOf(value: string | Uint8Array | null): number {
  return value === null ? 0 : value.length;
}

// A view is cloned with the whole buffer behind it, which for a small Buffer is a shared pool.
function compact(value: SqlValue): SqlValue {
  return value instanceof Uint8Array && value.byteLength !== value.buffer.byteLength ? new Uint8Array(value) : value;
}
