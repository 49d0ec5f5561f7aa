/** A network with many connections cannot keep out a network with few, with calls or without. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { mock, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { createCertificate } from '../../../test/support/basics/certificate.ts';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { ECHO_PATH, echoMethods, HELLO, SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import {
  BEGINNING,
  block,
  DATA,
  frame,
  frameMessage,
  HEADERS,
  SETTINGS,
  talk,
  WINDOW_UPDATE,
} from '../../../test/support/grpc/http2-frames.ts';
import { realWorld } from '../../world.ts';

const ATTACKER = '127.0.0.66';
const NOTHING = Buffer.alloc(0);
const NO_WINDOW = Buffer.from('000400000000', 'hex');
const never = frame(HEADERS, 4, 1, block(`/${SERVICE}/Never`));
const watch = [frame(HEADERS, 4, 1, block('/grpc.health.v1.Health/Watch')), frame(DATA, 1, 1, frameMessage(NOTHING))];

const echoed = (id: number): readonly Buffer[] => [
  frame(HEADERS, 4, id, block()),
  frame(DATA, 1, id, frameMessage(HELLO)),
];

/** A clock that a test can put forward. */
function createClock() {
  let aheadMs = 0;
  const world = { ...realWorld, monotonicMs: () => realWorld.monotonicMs() + aheadMs };
  const goOn = (ms: number): void => {
    aheadMs += ms;
  };
  return { world, goOn };
}

async function connectWith(port: number, address: string, ...parts: readonly Uint8Array[]): Promise<FlowClient> {
  const client = await FlowClient.connect(port, address);
  client.send(...parts);
  await client.settle();
  return client;
}

async function checkAnswered(client: FlowClient, streamId: number): Promise<void> {
  await client.untilEnded(streamId);
  assert.match(String(client.endOf(streamId)?.payload), /grpc-status.0/s);
}

async function connectBusy(port: number, address: string): Promise<FlowClient> {
  return await connectWith(port, address, never, frame(DATA, 1, 1, frameMessage(HELLO)));
}

test('one address whose connections are all busy does not keep another out', async () => {
  await using running = await startGrpcServer(echoMethods, { maxConnections: 6 });
  const { port } = running.server;
  const attackers: FlowClient[] = [];
  for (let index = 0; index < 6; index++) attackers.push(await connectBusy(port, ATTACKER));
  const honest = await connectBusy(port, '127.0.0.1');
  await attackers.at(-1)!.closed;
  const end = String(attackers.at(-1)!.endOf(1)?.payload);
  assert.match(end, /grpc-status.14.*Cannot answer: another client takes the place of the connection/s);
  assert.match(await running.metrics.metrics(), /^trivet_grpc_connections_evicted_total 1$/m);
  assert.ok(attackers.slice(0, -1).every(({ isClosed }) => !isClosed));
  for (const client of [honest, ...attackers]) client.socket.destroy();
});

for (const [what, parts] of [
  ['watch health', watch],
  ['do not end their request', [frame(HEADERS, 4, 1, block(`/${SERVICE}/Never`))]],
  [
    'do not open the window for their answer',
    [frame(SETTINGS, 0, 0, NO_WINDOW), frame(HEADERS, 4, 1, block()), frame(DATA, 1, 1, frameMessage(HELLO))],
  ],
] as const)
  test(`connections of as many networks, whose calls ${what}, do not keep another network out`, async () => {
    const { world, goOn } = createClock();
    await using running = await startGrpcServer(echoMethods, { maxConnections: 3, world });
    const { port } = running.server;
    const waiting: FlowClient[] = [];
    for (const address of ['127.0.0.2', '127.0.0.3', '127.0.0.4'])
      waiting.push(await connectWith(port, address, ...parts));
    goOn(2000);
    const honest = await connectWith(port, '127.0.0.5', ...echoed(1));
    await checkAnswered(honest, 1);
    assert.deepEqual(
      waiting.slice(1).map(({ isClosed }) => isClosed),
      [false, false],
    );
    for (const { socket } of [honest, ...waiting]) socket.destroy();
  });

for (const [what, path] of [
  ['request has just begun', ECHO_PATH],
  ['stream of messages has just had one', `/${SERVICE}/EchoAll`],
] as const)
  test(`the oldest connection, whose ${what}, does not give way while others have watched health for seconds`, async () => {
    const { world, goOn } = createClock();
    await using running = await startGrpcServer(echoMethods, { maxConnections: 3, world });
    const { port } = running.server;
    const oldest = await connectWith(port, '127.0.0.2', frame(HEADERS, 4, 1, block(path)));
    const watchers = [await connectWith(port, '127.0.0.3', ...watch), await connectWith(port, '127.0.0.4', ...watch)];
    goOn(5000);
    const isStream = path !== ECHO_PATH;
    oldest.send(isStream ? frame(DATA, 0, 1, frameMessage(HELLO)) : frame(HEADERS, 4, 3, block(path)));
    await oldest.settle();
    const honest = await connectWith(port, '127.0.0.5', ...echoed(1));
    await checkAnswered(honest, 1);
    await watchers[0]!.closed;
    const streamId = isStream ? 1 : 3;
    oldest.send(frame(DATA, 1, streamId, isStream ? NOTHING : frameMessage(HELLO)));
    await checkAnswered(oldest, streamId);
    for (const { socket } of [oldest, honest, ...watchers]) socket.destroy();
  });

test('a connection that was opened just now does not give way while others have watched health for seconds', async () => {
  const { world, goOn } = createClock();
  await using running = await startGrpcServer(echoMethods, { maxConnections: 3, world });
  const { port } = running.server;
  const watchers = [await connectWith(port, '127.0.0.2', ...watch), await connectWith(port, '127.0.0.3', ...watch)];
  goOn(5000);
  const fresh = await FlowClient.connect(port, '127.0.0.4');
  const honest = await connectWith(port, '127.0.0.5', ...echoed(1));
  await checkAnswered(honest, 1);
  fresh.send(...echoed(1));
  await checkAnswered(fresh, 1);
  await watchers[0]!.closed;
  assert.ok(!watchers[1]!.isClosed);
  for (const { socket } of [fresh, honest, ...watchers]) socket.destroy();
});

const LONG_MESSAGE = frameMessage(Buffer.alloc(90_000));
const SMALL_PART = Buffer.alloc(8192);
const SMALL_WINDOW = Buffer.from('00002000', 'hex');

for (const [what, open, goOn] of [
  [
    'sends a message',
    (client) => client.sendData(1, LONG_MESSAGE.subarray(0, 5), false),
    (client) => client.sendData(1, SMALL_PART, false),
  ],
  [
    'reads an answer',
    (client) => client.sendData(1, LONG_MESSAGE),
    async (client) => client.send(...[0, 1].map((id) => frame(WINDOW_UPDATE, 0, id, SMALL_WINDOW))),
  ],
] as readonly [string, open: (client: FlowClient) => Promise<void>, goOn: (client: FlowClient) => Promise<void>][])
  test(`the oldest connection, whose client ${what} in frames of 8 KiB, does not give way before one that stopped later`, async () => {
    const { world, goOn: passTime } = createClock();
    await using running = await startGrpcServer(echoMethods, { maxConnections: 2, world });
    const { port } = running.server;
    const oldest = await connectWith(
      port,
      '127.0.0.2',
      frame(SETTINGS, 0, 0, NO_WINDOW),
      frame(HEADERS, 4, 1, block()),
    );
    await open(oldest);
    let stopped: FlowClient | undefined;
    for (let part = 0; part < 10; part++) {
      if (part === 3) stopped = await connectWith(port, '127.0.0.3', frame(HEADERS, 4, 1, block()));
      passTime(300);
      await goOn(oldest);
      await oldest.settle();
    }
    const honest = await connectWith(port, '127.0.0.4', ...echoed(1));
    await checkAnswered(honest, 1);
    await Promise.race([oldest.closed, stopped!.closed]);
    assert.ok(!oldest.isClosed);
    for (const { socket } of [oldest, honest, stopped!]) socket.destroy();
  });

test('the oldest connection, whose message waits for memory that others use, does not give way', async () => {
  const { world, goOn } = createClock();
  const limits = { maxMessageBytes: 1_000_000, bufferBytes: 4_000_000, maxConnections: 3 };
  await using running = await startGrpcServer(echoMethods, { ...limits, world });
  const { port } = running.server;
  const message = frameMessage(Buffer.alloc(limits.maxMessageBytes));
  const begun = [frame(HEADERS, 4, 1, block()), frame(DATA, 0, 1, message.subarray(0, 1000))];
  const oldest = await FlowClient.connect(port, '127.0.0.2');
  const senders = [await connectWith(port, '127.0.0.3', ...begun), await connectWith(port, '127.0.0.4', ...begun)];
  oldest.send(...begun);
  await oldest.settle();
  assert.deepEqual(
    [oldest, ...senders].map((client) => client.windowOf(1) >= message.length - 1000),
    [false, true, true],
  );
  goOn(5000);
  const honest = await connectWith(port, '127.0.0.5', ...echoed(1));
  await checkAnswered(honest, 1);
  await senders[0]!.closed;
  await oldest.settle();
  assert.ok(!oldest.isClosed);
  for (const { socket } of [oldest, honest, ...senders]) socket.destroy();
});

test('connections through a trusted proxy do not give way to a stranger, since each counts for itself', async () => {
  const proxy = '127.0.0.67';
  await using running = await startGrpcServer(echoMethods, { maxConnections: 6, trustedProxies: ['127.0.0.64/29'] });
  const { port } = running.server;
  const proxied: FlowClient[] = [];
  for (let index = 0; index < 6; index++) proxied.push(await connectBusy(port, proxy));
  const stranger = connect({ port, host: '127.0.0.1' }).on('error', () => {});
  await once(stranger.resume(), 'close');
  await Promise.all(proxied.map((client) => client.settle()));
  assert.ok(proxied.every(({ isClosed }) => !isClosed));
  for (const client of proxied) client.socket.destroy();
});

test('an idle connection of an address that has few is not closed for one that has many', async () => {
  await using running = await startGrpcServer(echoMethods, { maxConnections: 6 });
  const { port } = running.server;
  const idle = await FlowClient.connect(port);
  const clients: FlowClient[] = [];
  for (let index = 0; index < 5; index++) clients.push(await connectBusy(port, ATTACKER));
  const refused = connect({ port, host: '127.0.0.1', localAddress: ATTACKER }).on('error', () => {});
  refused.resume();
  await once(refused, 'close');
  await idle.settle();
  assert.ok(!idle.isClosed);
  for (const client of [idle, ...clients]) client.socket.destroy();
});

test('TLS connections that never start a handshake are limited, and keep no client out', async () => {
  const files = createCertificate();
  await using running = await startGrpcServer(echoMethods, { maxConnections: 40, tls: files });
  const { port } = running.server;
  const silent: Socket[] = [];
  for (let index = 0; index < 30; index++) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    await once(socket, 'connect');
    silent.push(socket.resume());
  }
  const closed = silent
    .slice(0, 19)
    .filter((socket) => !socket.closed)
    .map((socket) => once(socket, 'close'));
  const honest = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] });
  await once(honest, 'secureConnect');
  await Promise.all(closed);
  honest.destroy();
  await running.server.drain(60_000);
  for (const socket of silent) socket.destroy();
});

test('a drain does not wait for clients that keep their side open', { timeout: 240_000 }, async () => {
  await using running = await startGrpcServer(echoMethods);
  const socket = connect({ port: running.server.port, host: '127.0.0.1', allowHalfOpen: true }).resume();
  await once(socket, 'connect');
  for (const part of BEGINNING) socket.write(part);
  await once(socket, 'data');
  await running.server.drain(600_000);
  socket.destroy();
});

test('pings in answer to data, as grpc-go sends them to learn the bandwidth, are not too many', async () => {
  await using running = await startGrpcServer(echoMethods);
  const calls = Array.from({ length: 6000 }, (_, index) => {
    const id = 2 * index + 1;
    return Buffer.concat([
      frame(HEADERS, 4, id, block()),
      frame(DATA, 1, id, frameMessage(HELLO)),
      frame(6, 0, 0, Buffer.alloc(8)),
    ]);
  });
  const frames = await talk(running.server.port, ...BEGINNING, ...calls);
  assert.ok(!frames.some(({ type }) => type === 7));
  assert.equal(frames.filter(({ type, flags }) => type === HEADERS && (flags & 1) === 1).length, 6000);
});

test('a drain does not wait for requests that do not come to their end', async () => {
  await using running = await startGrpcServer(echoMethods);
  const client = await FlowClient.connect(running.server.port);
  client.send(frame(HEADERS, 4, 1, block()));
  await client.settle();
  mock.timers.enable({ apis: ['setTimeout'] });
  const drained = running.server.drain(600_000);
  mock.timers.tick(1000);
  mock.timers.tick(3000);
  await client.untilEnded(1);
  mock.timers.reset();
  assert.match(String(client.endOf(1)?.payload), /grpc-status.14/s);
  client.socket.destroy();
  await drained;
});

test('TLS handshakes that one network leaves open do not close that of another', async () => {
  const files = createCertificate();
  await using running = await startGrpcServer(echoMethods, { maxConnections: 16, tls: files });
  const { port } = running.server;
  const slow = connect({ port, host: '127.0.0.1' }).on('error', () => {});
  await once(slow, 'connect');
  const silent: Socket[] = [];
  for (let index = 0; index < 10; index++) {
    const socket = connect({ port, host: '127.0.0.1', localAddress: ATTACKER }).on('error', () => {});
    await once(socket, 'connect');
    silent.push(socket.resume());
  }
  const gone = silent.slice(0, 7).filter(({ closed }) => !closed);
  await Promise.all(gone.map((socket) => once(socket, 'close')));
  const honest = connectTls({ socket: slow, rejectUnauthorized: false, ALPNProtocols: ['h2'] });
  await once(honest, 'secureConnect');
  for (const socket of [honest, ...silent]) socket.destroy();
});
