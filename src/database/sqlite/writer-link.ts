/** Starts the SQLite writer thread, and opens the channel to it. */
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import type { Statement } from '../store.ts';
import type { WriterThreadData } from './sqlite-writer-thread.ts';
import {
  type QueuedWrite,
  toWireError,
  type WriterOutcome,
  type WriterReply,
  type WriterRequest,
} from './writer-protocol.ts';

export interface WriterLink {
  /** Returns the number of a statement, by which the thread knows it. */
  define(statement: Statement<object>): number;
  /** Sends the write at the end of this turn of the event loop, together with all other writes of the turn. */
  send(write: QueuedWrite): void;
  /** Must be called when no write waits: the thread alone does not keep the process alive. */
  rest(): void;
  close(): Promise<void>;
}

export function startWriterLink(
  path: string,
  settle: (outcomes: readonly WriterOutcome[]) => void,
  /** Called when the thread has ended and its last answers are settled; `cause` is set unless `close` was called. */
  end: (cause: Error | undefined) => void,
): WriterLink {
  const { port1: port, port2: farPort } = new MessageChannel();
  const thread = new Worker(new URL('./sqlite-writer-thread.ts', import.meta.url), {
    workerData: { path, port: farPort } satisfies WriterThreadData,
    transferList: [farPort],
  });
  const statements = createStatementNumbers();
  let writes: QueuedWrite[] = [];
  let cause = new Error('The writer thread exited');
  let isClosing = false;

  port.on('message', (reply: WriterReply) => settle(reply.outcomes));
  thread.on('error', (error) => {
    cause = error instanceof Error ? error : new Error(String(error));
  });
  const ended = new Promise<void>((resolve) => thread.once('exit', () => resolve())).then(() => {
    // The exit event may arrive before answers that were sent earlier.
    for (let last = receiveMessageOnPort(port); last; last = receiveMessageOnPort(port))
      settle((last.message as WriterReply).outcomes);
    port.close();
    end(isClosing ? undefined : cause);
  });

  const flush = (): void => {
    const request: WriterRequest = { definitions: statements.takeNew(), writes };
    writes = [];
    post(port, request, settle);
  };

  rest(thread, port);
  return {
    define: (statement) => statements.define(statement),
    send: (write) => {
      if (writes.push(write) > 1) return;
      thread.ref();
      port.ref();
      // Not a microtask: writes that other sockets cause in this turn of the event loop are sent too, and wake the thread once.
      setImmediate(flush);
    },
    rest: () => rest(thread, port),
    close: async () => {
      isClosing = true;
      thread.ref();
      port.ref();
      // After the writes of this turn, which are about to be sent.
      setImmediate(() => port.postMessage({ definitions: [], writes: [], close: true } satisfies WriterRequest));
      await ended;
    },
  };
}

/** Numbers statements by their names. The thread gets the text of each once, with the next request. */
function createStatementNumbers() {
  const numbers = new Map<string, number>();
  let definitions: WriterRequest['definitions'][number][] = [];
  return {
    define({ name, text }: Statement<object>): number {
      const known = numbers.get(name);
      if (known !== undefined) return known;
      const number = numbers.size;
      numbers.set(name, number);
      definitions.push([number, name, text]);
      return number;
    },
    takeNew(): WriterRequest['definitions'] {
      const taken = definitions;
      definitions = [];
      return taken;
    },
  };
}

function rest(thread: Worker, port: MessagePort): void {
  thread.unref();
  port.unref();
}

function post(port: MessagePort, request: WriterRequest, settle: (outcomes: readonly WriterOutcome[]) => void): void {
  try {
    port.postMessage(request);
  } catch {
    port.postMessage({ definitions: request.definitions, writes: [] } satisfies WriterRequest);
    for (const write of request.writes) postAlone(port, write, settle);
  }
}

// An input that cannot be cloned (with a function in it, say) must not make the other writes fail.
function postAlone(port: MessagePort, write: QueuedWrite, settle: (outcomes: readonly WriterOutcome[]) => void): void {
  try {
    port.postMessage({ definitions: [], writes: [write] } satisfies WriterRequest);
  } catch (error) {
    settle([{ id: write.id, error: toWireError(error) }]);
  }
}
