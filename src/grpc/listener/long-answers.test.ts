/** A client that reads a long answer keeps its connection until it has read all of it, or stops. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { after, mock, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { echoMethods, HELLO, SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import {
  BEGINNING,
  block,
  DATA,
  frame,
  frameMessage,
  GOAWAY,
  HEADERS,
  readFrames,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../../test/support/grpc/http2-frames.ts';
import { nextAccepted, readSome, readUntilTaken } from '../../../test/support/network/read-slowly.ts';
import { PROGRESS_BYTES } from '../../connections/socket-progress.ts';
import { realWorld } from '../../world.ts';
import type { GrpcMethod } from '../call/service.ts';

/** More bytes than the socket buffers hold. */
const ANSWER = Buffer.alloc(32 * 1024 * 1024);
const WIDE_WINDOWS = [
  frame(SETTINGS, 0, 0, Buffer.from('00047fffffff', 'hex')),
  frame(WINDOW_UPDATE, 0, 0, Buffer.from('3fffffff', 'hex')),
];

const GOODBYE = frame(GOAWAY, 0, 0, Buffer.alloc(8));
// Shared by all tests: clearing a timer that was set before a reset of the mock would clear another one.
mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
after(() => mock.timers.reset());

const long: GrpcMethod = { kind: 'unary', name: 'Long', handle: () => ANSWER };

function call(method: string): Buffer {
  return Buffer.concat([frame(HEADERS, 4, 1, block(`/${SERVICE}/${method}`)), frame(DATA, 1, 1, frameMessage(HELLO))]);
}

const WATCH = Buffer.concat([
  frame(HEADERS, 4, 1, block('/grpc.health.v1.Health/Watch')),
  frame(DATA, 1, 1, frameMessage(Buffer.alloc(0))),
]);

/** A server whose clock and timers stand still. */
async function start() {
  let nowMs = 0;
  const running = await startGrpcServer([...echoMethods, long], {
    maxConnections: 2,
    bufferBytes: 4 * ANSWER.length,
    world: { ...realWorld, monotonicMs: () => nowMs },
  });
  return {
    port: running.server.port,
    drain: (deadlineMs: number) => running.server.drain(deadlineMs),
    goOn(ms: number): void {
      nowMs += ms;
      mock.timers.tick(ms);
    },
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}

async function connectAnswered(port: number, address: string): Promise<FlowClient> {
  const client = await FlowClient.connectWith(port, address, call('Echo'));
  await client.untilEnded(1);
  assert.match(String(client.endOf(1)?.payload), /grpc-status.0/s);
  return client;
}

/** A client that reads its long answer in parts. */
class Reader {
  readonly socket: Socket;
  readonly #accepted: Socket;
  readonly #parts: Buffer[] = [];

  private constructor(socket: Socket, accepted: Socket) {
    this.socket = socket.on('error', () => {});
    this.#accepted = accepted;
  }

  /** Resolves once the server has begun to send the answer. */
  static async connect(port: number, localAddress: string): Promise<Reader> {
    const accepted = nextAccepted();
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    const reader = new Reader(socket, await accepted);
    socket.write(Buffer.concat([...BEGINNING.map((part) => Buffer.from(part)), ...WIDE_WINDOWS, call('Long')]));
    await reader.readOn();
    return reader;
  }

  readOn(): Promise<void> {
    return readUntilTaken(this.socket, this.#accepted, PROGRESS_BYTES, this.#parts);
  }

  /** Reads 128 KiB and opens the window for as many, as clients do. */
  async readSlowly(): Promise<void> {
    await readSome(this.socket, 131_072, this.#parts);
    this.socket.write(frame(WINDOW_UPDATE, 0, 0, Buffer.from('00020000', 'hex')));
    for (let turn = 0; turn < 50; turn++) await setImmediate();
  }

  /** Reads until the connection ends. */
  async checkWhole(): Promise<void> {
    this.#parts.push(await buffer(this.socket));
    const data = readFrames(Buffer.concat(this.#parts)).filter(({ type }) => type === DATA);
    const bytes = data.reduce((sum, { payload }) => sum + payload.length, 0);
    assert.equal(bytes, frameMessage(ANSWER).length);
  }
}

test('a connection whose answer is on its way does not give way as an idle one', async () => {
  await using server = await start();
  const reader = await Reader.connect(server.port, '127.0.0.2');
  server.goOn(100);
  const idle = await connectAnswered(server.port, '127.0.0.3');
  server.goOn(100);
  const honest = await connectAnswered(server.port, '127.0.0.4');
  await idle.closed;
  reader.socket.write(GOODBYE);
  await reader.checkWhole();
  honest.socket.resetAndDestroy();
});

test('a client that reads its answer without a pause does not give way before one that stopped later', async () => {
  await using server = await start();
  const reader = await Reader.connect(server.port, '127.0.0.2');
  let stopped: FlowClient | undefined;
  for (let half = 0; half < 6; half++) {
    if (half === 2) stopped = await FlowClient.connectWith(server.port, '127.0.0.3', WATCH);
    await reader.readOn();
    server.goOn(500);
  }
  const honest = await connectAnswered(server.port, '127.0.0.4');
  await stopped!.closed;
  reader.socket.write(GOODBYE);
  await reader.checkWhole();
  honest.socket.resetAndDestroy();
});

/** The reader has given its place, since its network had both. */
async function startLeaving(server: { readonly port: number }) {
  const busy = await FlowClient.connectWith(server.port, '127.0.0.2', call('Never'));
  const reader = await Reader.connect(server.port, '127.0.0.2');
  const honest = await connectAnswered(server.port, '127.0.0.3');
  const leave = (): void => {
    for (const { socket } of [busy, honest]) socket.resetAndDestroy();
  };
  return { reader, leave };
}

test('a client whose connection gives way gets the answer that is on its way while it goes on reading', async () => {
  await using server = await start();
  const { reader, leave } = await startLeaving(server);
  for (let half = 0; half < 30; half++) {
    await reader.readSlowly();
    server.goOn(500);
  }
  await reader.checkWhole();
  leave();
});

test('a client whose connection gives way has 20 seconds to read on', async () => {
  await using server = await start();
  const { reader, leave } = await startLeaving(server);
  for (let half = 0; half < 40; half++) {
    await reader.readSlowly();
    server.goOn(500);
  }
  await assert.rejects(reader.checkWhole());
  leave();
});

test('a drain ends at its deadline a connection that gave way, though its client goes on reading', async () => {
  await using server = await start();
  const { reader, leave } = await startLeaving(server);
  const drained = server.drain(1000);
  for (let half = 0; half < 3; half++) {
    await reader.readOn();
    server.goOn(500);
  }
  await drained;
  await assert.rejects(reader.checkWhole());
  leave();
});

test('a connection that gave way goes on before one that gives way later, where there is room for one alone', async () => {
  await using server = await start();
  const staying = await Reader.connect(server.port, '127.0.0.2');
  const leaving = await Reader.connect(server.port, '127.0.0.2');
  const busy = await FlowClient.connectWith(server.port, '127.0.0.3', call('Never'));
  // The first look counts what the kernel has taken until then.
  for (const ms of [500, 1000]) server.goOn(ms);
  const honest = await connectAnswered(server.port, '127.0.0.4');
  await assert.rejects(staying.checkWhole());
  await leaving.checkWhole();
  for (const { socket } of [busy, honest]) socket.resetAndDestroy();
});

test('a client that only has to close its connection leaves that room to one that reads its answer', async () => {
  await using server = await start();
  const silent = connect({ port: server.port, host: '127.0.0.1', localAddress: '127.0.0.2', allowHalfOpen: true });
  await once(silent, 'data');
  const reader = await Reader.connect(server.port, '127.0.0.2');
  const busy = await FlowClient.connectWith(server.port, '127.0.0.3', call('Never'));
  // The first look counts what the kernel has taken until then.
  for (const ms of [500, 1000]) server.goOn(ms);
  const honest = await connectAnswered(server.port, '127.0.0.4');
  await reader.checkWhole();
  for (const socket of [silent, busy.socket, honest.socket]) socket.resetAndDestroy();
});
