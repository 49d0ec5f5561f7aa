/** Keeps the callers that wait for an answer of the writer thread, and rejects their calls when the thread ends. */
import type { Failure } from '../../errors.ts';
import { IdTable } from '../../memory/id-table.ts';
import { fromWireError, type WriterOutcome } from './writer-protocol.ts';

export interface WriterCallers {
  /** Registers a caller, then sends its write under the id. */
  add<Result>(bytes: number, send: (id: number) => void): Promise<Result>;
  /** Settles the call of the outcome; returns false when it was settled before. */
  settle(outcome: WriterOutcome): boolean;
  rejectAll(failure: Failure): void;
  count(): number;
  /** The bytes of the waiting writes. */
  waitingBytes(): number;
}

interface Caller {
  readonly id: number;
  readonly bytes: number;
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

export function createWriterCallers(): WriterCallers {
  const callers = new IdTable<Caller>();
  let lastId = 0;
  let waitingBytes = 0;
  return {
    add: <Result>(bytes: number, send: (id: number) => void) =>
      new Promise<Result>((resolve, reject) => {
        lastId += 1;
        callers.add({ id: lastId, bytes, resolve, reject });
        waitingBytes += bytes;
        send(lastId);
      }),
    settle(outcome) {
      const caller = callers.get(outcome.id);
      if (caller === undefined) return false;
      callers.delete(caller);
      waitingBytes -= caller.bytes;
      if ('error' in outcome) caller.reject(fromWireError(outcome.error));
      else caller.resolve(outcome.value as never);
      return true;
    },
    rejectAll(failure) {
      for (const caller of callers.list()) {
        callers.delete(caller);
        caller.reject(failure);
      }
      waitingBytes = 0;
    },
    count: () => callers.size,
    waitingBytes: () => waitingBytes,
  };
}
