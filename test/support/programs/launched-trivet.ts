/** The launcher (`bin/trivet.js`) in a process group of its own, as a terminal or systemd starts it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { waitUntil } from '../basics/wait-until.ts';

export interface LaunchedTrivet {
  readonly output: () => string;
  readonly log: () => string;
  /** To the launcher and to what it started, as Ctrl-C sends it. */
  signalGroup(signal: NodeJS.Signals): void;
  waitForOutput(pattern: RegExp): Promise<string>;
  waitForLog(pattern: RegExp): Promise<string>;
  readonly exited: Promise<number | null>;
  [Symbol.asyncDispose](): Promise<void>;
}

const BIN = resolve('bin/trivet.js');

export function launchTrivet(
  argv: readonly string[],
  { env, folder }: { readonly env: Readonly<Record<string, string>>; readonly folder?: string },
): LaunchedTrivet {
  const child = spawn(process.execPath, [BIN, ...argv], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const [output, log] = [collect(child.stdout), collect(child.stderr)];
  const exited = once(child, 'close').then(([code]) => code as number | null);
  let hasExited = false;
  void exited.then(() => {
    hasExited = true;
  });
  const find = async (text: () => string, pattern: RegExp): Promise<string> => {
    const found = await waitUntil(() => pattern.exec(text()) ?? hasExited);
    if (found === true) throw new Error(`It ended before it wrote ${pattern}:\n${output()}${log()}`);
    return found[1] ?? found[0];
  };
  const signalGroup = (signal: NodeJS.Signals) => {
    if (!hasExited) process.kill(-(child.pid ?? 0), signal);
  };
  return {
    output,
    log,
    signalGroup,
    waitForOutput: (pattern) => find(output, pattern),
    waitForLog: (pattern) => find(log, pattern),
    exited,
    [Symbol.asyncDispose]: async () => {
      signalGroup('SIGKILL');
      await exited;
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
