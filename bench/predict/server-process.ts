import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Readings } from './readings.ts';

/** The program that pins a process to one core; present on Linux. */
export const TASKSET = existsSync('/usr/bin/taskset') ? '/usr/bin/taskset' : undefined;

export interface ServerProcess {
  readonly port: number;
  begin(): Promise<unknown>;
  /** Reads what the server has measured since the start signal. */
  end(): Promise<Readings>;
  ask<T>(question: string | object): Promise<T>;
  /** Suspends all threads of the server until `resume`. */
  suspend(): void;
  resume(): void;
  stop(): Promise<void>;
}

export async function startServer(
  parameters: readonly string[],
  { isPinned }: { readonly isPinned: boolean },
): Promise<ServerProcess> {
  const [command, ...before] = isPinned ? [TASKSET!, '-c', '0', process.execPath] : [process.execPath];
  const child = spawn(command!, [...before, ...parameters], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const { port } = await nextMessage<{ port: number }>(child);
  return {
    port,
    begin: () => ask(child, 'begin'),
    end: () => ask(child, 'end'),
    ask: (question) => ask(child, question),
    suspend: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    stop: () => stop(child),
  };
}

function ask<T>(child: ChildProcess, question: string | object): Promise<T> {
  child.send(question);
  return nextMessage<T>(child);
}

function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(new Error('The server ended'));
    child.once('close', fail);
    child.once('message', (message) => {
      child.off('close', fail);
      resolve(message as T);
    });
  });
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('close', () => resolve());
    child.kill('SIGTERM');
  });
}
