/** The real program as a child process, for journeys: what a user starts, on a folder of its own and free ports. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { makeDataFolder } from '../basics/data-folder.ts';

export interface Program {
  readonly httpUrl: string;
  /** `host:port`. */
  readonly grpcAddress: string;
  readonly dataDir: string;
  readonly pid: number;
  /** The program has written this so far: its banner (standard output) and its log (standard error). */
  readonly output: () => string;
  readonly log: () => string;
  /** SIGTERM; resolves with the exit code once it has stopped. */
  stop(): Promise<number | null>;
  /** SIGKILL; resolves once it is gone. */
  kill(): Promise<void>;
  readonly exited: Promise<number | null>;
  [Symbol.asyncDispose](): Promise<void>;
}

export type ProgramEnvironment = Readonly<Record<string, string>>;

export function createDataDir(): string {
  return makeDataFolder('trivet-test-');
}

/** The flags that `bin/trivet.js` gives to Node. */
export const NODE_FLAGS = ['--max-semi-space-size=2', '--no-parallel-scavenge', '--heap-growing-percent=100'];

/** Starts `node src/main.ts`; resolves once it says that it is ready, rejects with its output when it ends before. */
export async function startProgram(
  environment: ProgramEnvironment = {},
  dataDir = createDataDir(),
  folder = process.cwd(),
): Promise<Program> {
  const child = spawn(process.execPath, [...NODE_FLAGS, 'src/main.ts'], {
    cwd: folder,
    env: { ...process.env, HTTP_PORT: '0', GRPC_PORT: '0', TRIVET_DATA_DIR: dataDir, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = collect(child.stdout);
  const log = collect(child.stderr);
  const exited = once(child, 'close').then(([code]) => code as number | null);
  await waitUntilReady(child, output, log, exited);
  return {
    httpUrl: matchFirst(/HTTP\s+(\S+)/, output()),
    grpcAddress: matchFirst(/gRPC\s+(\S+)/, output()),
    dataDir,
    pid: child.pid ?? 0,
    output,
    log,
    exited,
    stop: () => end(child, 'SIGTERM', exited),
    kill: async () => void (await end(child, 'SIGKILL', exited)),
    [Symbol.asyncDispose]: async () => {
      await end(child, 'SIGKILL', exited);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

async function waitUntilReady(
  child: ChildProcess,
  output: () => string,
  log: () => string,
  exited: Promise<unknown>,
): Promise<void> {
  const ended = exited.then(() => {
    throw new Error(`The program ended before it was ready:\n${output()}${log()}`);
  });
  const ready = new Promise<void>((resolve) => {
    child.stdout?.on('data', () => {
      if (output().includes('Trivet is ready') && output().endsWith('\n')) resolve();
    });
  });
  await Promise.race([ready, ended]);
}

function matchFirst(pattern: RegExp, text: string): string {
  return pattern.exec(text)?.[1] ?? '';
}

function end(child: ChildProcess, signal: NodeJS.Signals, exited: Promise<number | null>): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  return exited;
}
