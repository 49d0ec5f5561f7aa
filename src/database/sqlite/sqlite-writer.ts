import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Procedure, Row, SqlValue, Step } from '../store.ts';
import { startWriterLink, type WriterLink } from './writer-link.ts';
import { fromWireError, type WriterOutcome, type WriterUnit } from './writer-protocol.ts';

/** The near end of the writer thread: who waits for which answer, and how many may wait. */
export interface SqliteWriter {
  writeAll(steps: readonly Step[]): Promise<Row[][]>;
  call<Input, Result>(procedure: Procedure<Input, Result>, input: Input): Promise<Result>;
  countWaiting(): number;
  /** Resolves when everything that waits is stored and the database is closed. */
  close(): Promise<void>;
}

export interface SqliteWriterOptions {
  readonly path: string;
  readonly log: Log;
  /** One more is refused, so that memory stays bounded when the callers are faster than the disk. */
  readonly maxWaiting?: number;
  readonly maxWaitingBytes?: number;
}

interface Caller {
  readonly bytes: number;
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

const DEFAULT_MAX_WAITING = 20_000;
const DEFAULT_MAX_WAITING_BYTES = 256 * 1024 * 1024;

export function createSqliteWriter(options: SqliteWriterOptions): SqliteWriter {
  const { path, log, maxWaiting = DEFAULT_MAX_WAITING, maxWaitingBytes = DEFAULT_MAX_WAITING_BYTES } = options;
  const callers = new Map<number, Caller>();
  let link: WriterLink | undefined;
  let lastId = 0;
  let waitingBytes = 0;
  let closing: Promise<void> | undefined;
  let cannotStore = false;

  // Once an outage (a full disk, say): until it ends every write fails in the same way.
  const noteOutage = (outcome: WriterOutcome): void => {
    const wasOut = cannotStore;
    cannotStore = 'error' in outcome && outcome.error.failure === 'unavailable';
    if (cannotStore && !wasOut && 'error' in outcome)
      log.error({ err: fromWireError(outcome.error) }, 'the database cannot store anything; writes are refused');
    if (wasOut && !cannotStore) log.warn('the database stores again');
  };

  const settle = (outcomes: readonly WriterOutcome[]): void => {
    for (const outcome of outcomes) {
      const caller = callers.get(outcome.id);
      if (caller === undefined) continue;
      callers.delete(outcome.id);
      waitingBytes -= caller.bytes;
      noteOutage(outcome);
      if ('error' in outcome) caller.reject(fromWireError(outcome.error));
      else caller.resolve(outcome.value as never);
    }
    if (callers.size === 0) link?.rest();
  };

  // The next write starts another thread. Whether the last batch was stored cannot be known here.
  const endThread = (cause: Error | undefined): void => {
    link = undefined;
    if (cause !== undefined) log.error({ err: cause, waiting: callers.size }, 'the database writer ended unexpectedly');
    const failure = new Failure(
      'unavailable',
      'Cannot write: the database writer ended',
      { isUnknown: true },
      { cause },
    );
    for (const caller of callers.values()) caller.reject(failure);
    callers.clear();
    waitingBytes = 0;
  };

  const ensureLink = (): WriterLink => {
    link ??= startWriterLink(path, settle, endThread);
    return link;
  };

  const findRefusal = (bytes: number): Failure | undefined => {
    if (closing !== undefined) return new Failure('unavailable', 'Cannot write: the database is closed');
    const isFull = callers.size >= maxWaiting || (callers.size > 0 && waitingBytes + bytes > maxWaitingBytes);
    if (!isFull) return undefined;
    return new Failure('unavailable', 'Cannot write: too many writes are waiting', { retryAfterSeconds: 1 });
  };

  const submit = <Result>(bytes: number, createUnit: (id: number, link: WriterLink) => WriterUnit): Promise<Result> => {
    const refusal = findRefusal(bytes);
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise<Result>((resolve, reject) => {
      lastId += 1;
      callers.set(lastId, { bytes, resolve, reject });
      waitingBytes += bytes;
      const current = ensureLink();
      current.send(createUnit(lastId, current));
    });
  };

  return {
    writeAll: (steps) =>
      submit(measureSteps(steps), (id, current) => ({
        id,
        steps: steps.map((step) => [current.define(step.statement), step.parameters.map(compact)] as const),
      })),
    call: ({ module, name }, input) => submit(PROCEDURE_BYTES, (id) => ({ id, module, name, input })),
    countWaiting: () => callers.size,
    close: () => {
      closing ??= link?.close() ?? Promise.resolve();
      return closing;
    },
  };
}

/** What an input is taken to weigh; measuring a tree of values would cost more than it says. */
const PROCEDURE_BYTES = 1024;

function measureSteps(steps: readonly Step[]): number {
  let bytes = 0;
  for (const { parameters } of steps)
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
