/** Starts our gRPC server on a real port, with the methods of a test. */
import assert from 'node:assert/strict';
import type { GrpcCall, GrpcMethod, MessageCollector } from '../../../src/grpc/call/service.ts';
import { type GrpcServer, type GrpcServerDependencies, openGrpcServer } from '../../../src/grpc/listener/server.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics.ts';
import { realWorld } from '../../../src/world.ts';
import { connectRaw, type RawClient } from './grpc-client.ts';

export const SERVICE = 'test.v1.EchoService';
/** The path of the method that `unary` creates. */
export const ECHO_PATH = `/${SERVICE}/Echo`;
export const HELLO = Buffer.from('hello');

export interface RunningGrpc extends AsyncDisposable {
  readonly server: GrpcServer;
  readonly client: RawClient;
  readonly logged: Record<string, unknown>[];
  readonly metrics: Metrics;
}

/** Checks that the server still has time and memory for others: a call on a new connection succeeds. */
export async function checkOthersAreAnswered({ client }: Pick<RunningGrpc, 'client'>): Promise<void> {
  assert.equal(String(await client.unary(ECHO_PATH, HELLO)), 'hello');
}

export async function startGrpcServer(
  methods: readonly GrpcMethod[],
  dependencies: Partial<GrpcServerDependencies> = {},
): Promise<RunningGrpc> {
  const logged: Record<string, unknown>[] = [];
  const metrics = createMetrics();
  const server = await openGrpcServer({
    services: [{ name: SERVICE, methods }],
    host: '127.0.0.1',
    port: 0,
    maxMessageBytes: 100_000,
    log: createLog('info', { write: (line) => logged.push(JSON.parse(line)) }),
    metrics,
    world: realWorld,
    ...dependencies,
  });
  const client = connectRaw(`127.0.0.1:${server.port}`);
  return {
    server,
    client,
    logged,
    metrics,
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await server.drain(1000);
    },
  };
}

export function unary(handle: (request: Uint8Array, call: GrpcCall) => Uint8Array | Promise<Uint8Array>): GrpcMethod {
  return { kind: 'unary', name: 'Echo', handle };
}

/** A client-streaming method that accepts each message and answers nothing, unless its collector does something else. */
export function clientStream(name: string, open: (call: GrpcCall) => Partial<MessageCollector>): GrpcMethod {
  const rest: MessageCollector = {
    reserve: () => true,
    take: () => {},
    finish: async () => Buffer.alloc(0),
    close: () => {},
  };
  return { kind: 'client-stream', name, open: (call) => ({ ...rest, ...open(call) }) };
}

export const echo = unary((request) => request);

/** Methods that answer at once, in a later event loop turn, never, and message by message. */
export const echoMethods: readonly GrpcMethod[] = [
  echo,
  { kind: 'unary', name: 'Later', handle: async (request) => request },
  { kind: 'unary', name: 'Never', handle: () => new Promise(() => {}) },
  {
    kind: 'stream',
    name: 'EchoAll',
    async *handle(requests) {
      for await (const request of requests) yield request;
    },
  },
];
