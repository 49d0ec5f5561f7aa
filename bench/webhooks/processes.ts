/** Starts the processes of a benchmark, the receiver and the measured engine, and reads their processor time. */
import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE_FLAGS } from '../../test/support/programs/start-program.ts';
import type { BenchHook, EngineCommand } from './engine.ts';
import type { Place } from './places.ts';
import type { Arrival, ReceiverCommand } from './receiver.ts';

const PORTS = 16;
const HOOKS_A_PORT = 4;
const LOOK_MS = 20;
/** A delivery that does not arrive within this time after the last one is missing: a failed one would have been retried by then. */
const LOST_AFTER_MS = 60_000;

export interface Receiver {
  /** The ports; the last one is slow. */
  readonly ports: readonly number[];
  readonly pid: number;
  /** Resolves when this many different deliveries have arrived, not counting the slow port, or no more arrive; returns their number. */
  waitFor(count: number): Promise<number>;
  report(): Promise<Arrival[]>;
  stop(): void;
}

interface ReceiverOptions {
  /** How long the last port takes to answer. */
  readonly slowMs?: number;
  readonly lostAfterMs?: number;
}

export async function startReceiver({
  slowMs = 0,
  lostAfterMs = LOST_AFTER_MS,
}: ReceiverOptions = {}): Promise<Receiver> {
  const child = fork(join(import.meta.dirname, 'receiver.ts'), { stdio: 'inherit' });
  const ask = async <T>(command: ReceiverCommand, answer: string): Promise<T> => {
    child.send(command);
    return (await nextMessage(child, answer)) as T;
  };
  const { ports } = await ask<{ ports: number[] }>({ kind: 'listen', ports: PORTS + 1, slowMs }, 'listening');
  return {
    ports,
    pid: child.pid ?? 0,
    waitFor: async (count) => {
      let [arrived, lastMs] = [0, performance.now()];
      while (arrived < count && performance.now() - lastMs < lostAfterMs) {
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
        const counted = await ask<{ count: number }>({ kind: 'count' }, 'counted');
        if (counted.count > arrived) [arrived, lastMs] = [counted.count, performance.now()];
      }
      return arrived;
    },
    report: async () => (await ask<{ arrivals: Arrival[] }>({ kind: 'report' }, 'arrivals')).arrivals,
    stop: () => child.kill(),
  };
}

function nextMessage(child: ChildProcess, kind: string): Promise<object> {
  return new Promise((resolve) => {
    const listener = (message: { kind: string }) => {
      if (message.kind !== kind) return;
      child.off('message', listener);
      resolve(message);
    };
    child.on('message', listener);
  });
}

export interface EngineProcess {
  readonly pid: number;
  ask(command: EngineCommand): Promise<unknown>;
  stop(): Promise<void>;
}

export async function startEngine(place: Place, hooks: readonly BenchHook[]): Promise<EngineProcess> {
  const child = fork(join(import.meta.dirname, 'engine.ts'), { stdio: 'inherit', execArgv: NODE_FLAGS });
  const ask = (command: EngineCommand): Promise<unknown> =>
    new Promise((resolve, reject) => {
      child.once('message', (message: { kind: string; result?: unknown; message?: string }) =>
        message.kind === 'done' ? resolve(message.result) : reject(new Error(message.message)),
      );
      child.send(command);
    });
  await ask({ kind: 'open', options: place.options, hooks });
  return {
    pid: child.pid ?? 0,
    ask,
    stop: async () => {
      await ask({ kind: 'stop' });
      child.disconnect();
    },
  };
}

/** Some hooks for each port; an owner for each port. */
export function createHooks(ports: readonly number[], perPort = HOOKS_A_PORT): BenchHook[] {
  return ports.flatMap((port, index) =>
    Array.from({ length: perPort }, (_, hook) => ({
      id: index * perPort + hook + 1,
      url: `http://127.0.0.1:${port}/hook`,
      ownerId: `owner-${index}`,
    })),
  );
}

/** Processor time of a process and its children, in milliseconds; 0 if it does not run. */
export function readCpuMs(pid: number): number {
  if (pid === 0) return 0;
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    // Its own, and that of children that have ended.
    const ownMs = [11, 12, 13, 14].reduce((sum, field) => sum + Number(fields[field]) * 10, 0);
    return children.reduce((sum, child) => sum + readCpuMs(Number(child)), ownMs);
  } catch {
    return 0;
  }
}

export function readRssMb(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0';
  return Math.round(Number(kilobytes) / 1024);
}
