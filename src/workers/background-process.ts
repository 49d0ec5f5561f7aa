/**
 * Runs long computations in a child process of low priority, with a time limit for each. A thread of this process would sometimes
 * wait for the processor while it holds a lock that all threads share (above all on the memory map), and the serving thread would
 * wait too.
 */
import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import { setPriority } from 'node:os';
import { Failure } from '../errors.ts';

export interface BackgroundProcess {
  /** Starts the process. Call it while this process is small: a fork copies its memory map, and blocks meanwhile. */
  start(): void;
  /**
   * Resolves with the answer of the handler that the child passed to `answerOrders`; order and answer must be cloneable. One
   * order at a time. Starts the process unless it runs, and ends it when the signal is aborted.
   */
  ask<Order extends object, Answer>(order: Order, signal: AbortSignal): Promise<Answer>;
  stop(): void;
}

/** The niceness, which gives a tenth of a contended processor: enough to finish, and the serving process takes it back at once. */
const NICENESS = 10;
/** How many characters of its standard error are kept: enough to show why it ended. */
const KEPT_WORDS = 2000;

type Outcome = { readonly answer: unknown } | { readonly error: unknown };

interface Running {
  readonly child: ChildProcess;
  readonly stderr: Socket;
  lastWords: string;
}

export function createBackgroundProcess(module: URL): BackgroundProcess {
  let running: Running | undefined;

  function start(): Running {
    const started = startChild(module);
    const forget = (): void => {
      if (running === started) running = undefined;
    };
    started.child.once('exit', forget).on('error', forget);
    running = started;
    return started;
  }

  function stop(): void {
    running?.child.kill('SIGKILL');
    running = undefined;
  }

  return {
    start: () => void (running ?? start()),
    async ask<Order extends object, Answer>(order: Order, signal: AbortSignal) {
      signal.throwIfAborted();
      const asked = running ?? start();
      keepAwake(asked);
      signal.addEventListener('abort', stop);
      try {
        const outcome = await exchange(asked, order);
        if ('error' in outcome) throw outcome.error;
        return outcome.answer as Answer;
      } finally {
        signal.removeEventListener('abort', stop);
        letExit(asked);
      }
    },
    stop,
  };
}

export interface AskLimit {
  readonly maxMs: number;
  /** The message of the refusal. */
  readonly describe: (seconds: number) => string;
  /** The field that the refusal is about. */
  readonly field?: string;
  /** Aborts the order. */
  readonly signal?: AbortSignal;
}

/** Sends the order, and ends a process that has not answered in time; then throws `deadline`. */
export async function askWithin<Order extends object, Answer>(
  background: BackgroundProcess,
  order: Order,
  { maxMs, describe, field, signal }: AskLimit,
): Promise<Answer> {
  const deadline = AbortSignal.timeout(maxMs);
  const signals = signal === undefined ? [deadline] : [deadline, signal];
  try {
    return await background.ask<Order, Answer>(order, AbortSignal.any(signals));
  } catch (cause) {
    if (!deadline.aborted) throw cause;
    throw new Failure('deadline', describe(maxMs / 1000), field === undefined ? {} : { field }, { cause });
  }
}

function startChild(module: URL): Running {
  // A pipe, not this process's standard error: a child that outlives it for a moment must not hold that open.
  const child = fork(module, { serialization: 'advanced', stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  const started: Running = { child, stderr: child.stderr as Socket, lastWords: '' };
  started.stderr.setEncoding('utf8').on('data', (words: string) => {
    started.lastWords = (started.lastWords + words).slice(-KEPT_WORDS);
  });
  if (child.pid !== undefined) setPriority(child.pid, NICENESS);
  letExit(started);
  return started;
}

async function exchange(asked: Running, order: object): Promise<Outcome> {
  const { child } = asked;
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  const end = (code: number | null, killedBy: string | null): void =>
    reject(new Error(`The process ended without an answer (${killedBy ?? `exit code ${code}`}): ${asked.lastWords}`));
  child.once('message', resolve).once('error', reject).once('close', end);
  child.send(order);
  return await promise.finally(() => child.off('message', resolve).off('error', reject).off('close', end));
}

/** A pending answer keeps the process alive; an idle worker does not. */
function keepAwake({ child, stderr }: Running): void {
  child.ref();
  child.channel?.ref();
  stderr.ref();
}

function letExit({ child, stderr }: Running): void {
  child.unref();
  child.channel?.unref();
  stderr.unref();
}

/** The child's side: answers one request after the other, and ends with its parent. */
export function answerOrders<Order, Answer>(answer: (order: Order) => Promise<Answer>): void {
  // A terminal sends signals to all its processes at once; the parent decides when this process stops.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
  process.once('disconnect', () => process.exit());
  process.on('message', (order) => {
    answer(order as Order).then(
      (answered) => process.send?.({ answer: answered } satisfies Outcome),
      (error: unknown) => process.send?.({ error } satisfies Outcome),
    );
  });
}
