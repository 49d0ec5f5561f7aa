/** A network with many connections cannot keep out a network with few, whether or not they have calls. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { mock, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { createCertificate } from '../../../test/support/basics/certificate.ts';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { echoMethods, HELLO, SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import { BEGINNING, block, DATA, frame, frameMessage, HEADERS, talk } from '../../../test/support/grpc/http2-frames.ts';

const ATTACKER = '127.0.0.66';
const never = frame(HEADERS, 4, 1, block(`/${SERVICE}/Never`));

async function connectBusy(port: number, address: string): Promise<FlowClient> {
  return await FlowClient.connectWith(port, address, never, frame(DATA, 1, 1, frameMessage(HELLO)));
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
