/** Connections that make no calls do not hold a place for ever. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { afterEach, mock, test } from 'node:test';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { ECHO_PATH, echoMethods, HELLO, SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import { block, frame, frameMessage, HEADERS, PING } from '../../../test/support/grpc/http2-frames.ts';
import { Keepalive } from '../http2/keepalive.ts';

const NONE = 0;

afterEach(() => mock.timers.reset());

interface RawClient {
  readonly socket: Socket;
  readonly greeted: Promise<void>;
  readonly closed: Promise<void>;
}

/** A connection that sends nothing. The server's greeting shows that it was accepted. */
function connectRaw(port: number): RawClient {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  return {
    socket,
    greeted: new Promise((resolve) => socket.on('data', () => resolve())),
    closed: new Promise((resolve) => socket.once('close', () => resolve())),
  };
}

test('beyond the limit, a new connection takes the place of the one that is longest without a call', async () => {
  await using running = await startGrpcServer(echoMethods, { maxConnections: 3 });
  const { port } = running.server;
  const busy = await FlowClient.connect(port);
  const call = [frame(HEADERS, 4, 1, block(`/${SERVICE}/Never`)), frame(0, 1, 1, frameMessage(HELLO))];
  busy.send(...call);
  const silent = connectRaw(port);
  await silent.greeted;
  const idle = await FlowClient.connect(port);
  idle.send(frame(HEADERS, 4, 1, block(ECHO_PATH)), frame(0, 1, 1, frameMessage(HELLO)));
  await idle.untilEnded(1);
  const first = await FlowClient.connect(port);
  await silent.closed;
  const second = await FlowClient.connect(port);
  await idle.closed;
  assert.equal(idle.goAwayCode, NONE);
  for (const client of [first, second]) {
    client.send(...call);
    await client.settle();
  }
  await connectRaw(port).closed;
  for (const client of [busy, first, second]) {
    await client.settle();
    assert.ok(!client.isClosed);
    client.socket.destroy();
  }
});

test('a call that comes in two reads counts for the connection like any other', async () => {
  await using running = await startGrpcServer(echoMethods, { maxConnections: 3 });
  const { port } = running.server;
  const active = await FlowClient.connect(port);
  const idle = await FlowClient.connect(port);
  idle.send(frame(HEADERS, 4, 1, block(ECHO_PATH)), frame(0, 1, 1, frameMessage(HELLO)));
  await idle.untilEnded(1);
  active.send(frame(HEADERS, 4, 1, block(ECHO_PATH)));
  await active.settle();
  active.send(frame(0, 1, 1, frameMessage(HELLO)));
  await active.untilEnded(1);
  const others = [await FlowClient.connect(port), await FlowClient.connect(port)];
  await idle.closed;
  await active.settle();
  assert.ok(!active.isClosed);
  for (const { socket } of [active, ...others]) socket.destroy();
});

test('a connection that does not begin as HTTP/2 in time is closed', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  await using running = await startGrpcServer(echoMethods);
  const clients = [connectRaw(running.server.port), connectRaw(running.server.port)];
  await Promise.all(clients.map(({ greeted }) => greeted));
  clients[0]!.socket.write('PRI * HTTP/2.0\r\n');
  mock.timers.tick(10_000);
  await Promise.all(clients.map(({ closed }) => closed));
});

test('a client that drips bytes and makes no calls is given up like a silent one', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  await using running = await startGrpcServer(echoMethods);
  const client = await FlowClient.connect(running.server.port);
  const unanswered = frame(PING, 0, 0, Buffer.alloc(8));
  for (let byte = 0; byte < 6; byte++) {
    client.socket.write(unanswered.subarray(byte, byte + 1));
    mock.timers.tick(20_000);
  }
  await client.closed;
});

test('keepalive pings a client without calls, and gives it up when it does not answer', () => {
  mock.timers.enable({ apis: ['setInterval'] });
  const happened: string[] = [];
  const keepalive = new Keepalive(
    () => happened.push('ask'),
    () => happened.push('give up'),
  );
  keepalive.hearCall();
  mock.timers.tick(60_000);
  assert.deepEqual(happened, []);
  mock.timers.tick(60_000);
  keepalive.hearAnswer();
  mock.timers.tick(120_000);
  assert.deepEqual(happened, ['ask', 'ask', 'give up']);
  keepalive.stop();
});
