/**
 * Runs the well-behaved client in a separate process with short pauses: the process that starts attacks and reads memory does not
 * delay it, and its young generation is small.
 * `node bench/abuse/good-client-process.ts GRPC_ADDRESS HTTP_URL [TOKEN]`, which receives messages that say for how long to call.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { SHORT_PAUSES } from '../support/short-pauses.ts';
import { connectGoodClient, type Experience, type GoodClient, type Service } from './good-client.ts';

export interface GoodClientProcess extends GoodClient {
  readonly pid: number;
}

const NODE_FLAGS = ['--expose-gc', ...SHORT_PAUSES];

export function startGoodClient({ grpcAddress, httpUrl }: Service, token: string | undefined): GoodClientProcess {
  const parameters = [grpcAddress, httpUrl, ...(token === undefined ? [] : [token])];
  const child = fork(import.meta.filename, parameters, { execArgv: NODE_FLAGS, serialization: 'advanced' });
  return {
    pid: child.pid ?? 0,
    measure: (durationMs) => measure(child, durationMs),
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  };
}

async function measure(child: ChildProcess, durationMs: number): Promise<Experience> {
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('The client that behaves ended')));
  child.send(durationMs);
  const [experience] = await Promise.race([once(child, 'message'), ended]);
  return experience as Experience;
}

async function answer(client: GoodClient, durationMs: number): Promise<void> {
  globalThis.gc?.();
  process.send?.(await client.measure(durationMs));
}

if (import.meta.main) {
  const [grpcAddress = '', httpUrl = '', token] = process.argv.slice(2);
  const client = connectGoodClient({ grpcAddress, httpUrl }, token);
  process.on('message', (durationMs: number) => void answer(client, durationMs));
}
