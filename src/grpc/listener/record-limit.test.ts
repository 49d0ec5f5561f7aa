/** TLS connections that flood the server with records without content end; those with content, however small, do not. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { mock, test } from 'node:test';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { createCertificate } from '../../../test/support/basics/certificate.ts';
import { echoMethods, HELLO, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import { BEGINNING, block, DATA, frame, frameMessage, HEADERS, PING } from '../../../test/support/grpc/http2-frames.ts';
import { connectRecordClient, type RecordClient } from '../../../test/support/network/tls-records.ts';
import { RecordLimit } from './record-limit.ts';

const KEY_UPDATE_BYTES = 27;
const BEGINNING_BYTES = Buffer.concat(BEGINNING.map((part) => Buffer.from(part)));
const OPTIONS = { rejectUnauthorized: false, ALPNProtocols: ['h2'] };

/** Sends this many key updates, then a ping, and resolves with its answer: the server has read all of them. */
async function changeKeys(client: RecordClient, changes: number, content: Buffer = Buffer.alloc(0)): Promise<void> {
  const name = Buffer.from(String(changes).padStart(8));
  client.send(changes, Buffer.concat([content, frame(PING, 0, 0, name)]));
  let answers = Buffer.alloc(0);
  while (!answers.includes(name))
    answers = Buffer.concat([answers, ...((await once(client.socket, 'data')) as Buffer[])]);
}

test('a client that changes its keys again and again is cut off, one that does it now and then is not', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] });
  t.after(() => mock.timers.reset());
  await using running = await startGrpcServer(echoMethods, { tls: createCertificate() });
  const client = await connectRecordClient(running.server.port);
  await changeKeys(client, 4000, BEGINNING_BYTES);
  mock.timers.tick(100);
  // Half a second forgives 2,500 key updates.
  mock.timers.tick(500);
  await changeKeys(client, 3001);
  mock.timers.tick(100);
  await changeKeys(client, 3002);
  const closed = once(client.socket, 'close');
  mock.timers.tick(100);
  await closed;
});

test('a byte in each record is content enough', () => {
  const limit = new RecordLimit();
  const raw = { bytesRead: 1000 };
  const socket = { bytesRead: 0, destroyed: false, destroy: () => assert.fail('destroyed') };
  const connection = { network: 'one', raw, socket, contentRecords: 0 };
  limit.watch(connection);
  for (let check = 0; check < 100; check++) {
    raw.bytesRead += 100_000 * 23;
    socket.bytesRead += 100_000;
    connection.contentRecords += 100_000;
    limit.check();
  }
  socket.destroyed = true;
  limit.check();
});

/** A connection without content, with the counters that the limit reads. */
function open(limit: RecordLimit, network: string) {
  const socket = {
    bytesRead: 0,
    destroyed: false,
    destroy() {
      socket.destroyed = true;
    },
  };
  const connection = { network, raw: { bytesRead: 0 }, socket, contentRecords: 0 };
  limit.watch(connection);
  return connection;
}

/** Opens connections that each send this many key updates between two checks; returns how many are left after 60 checks. */
function flood(networks: readonly string[], changes: number): number {
  const limit = new RecordLimit();
  const connections = networks.map((network) => open(limit, network));
  for (let check = 0; check < 60; check += 1) {
    for (const { raw, socket } of connections) if (!socket.destroyed) raw.bytesRead += changes * KEY_UPDATE_BYTES;
    limit.check();
  }
  const left = connections.filter(({ socket }) => !socket.destroyed);
  for (const { socket } of left) socket.destroy();
  return left.length;
}

test('connections of one network have one bound together, those of all networks four of them', () => {
  const ofOne = (count: number) => Array.from({ length: count }, () => 'one');
  // Each sends far fewer than the 500 that one connection may send between two checks.
  assert.equal(flood(ofOne(12), 40), 12);
  const left = flood(ofOne(120), 40);
  assert.ok(left <= 20, `${left} are left`);
  const many = Array.from({ length: 200 }, (_, index) => `network ${index}`);
  assert.ok(flood(many, 400) <= 5, 'all networks together');
});

test('many connections of one network whose records come in halves go on', () => {
  const limit = new RecordLimit();
  const connections = Array.from({ length: 40 }, () => open(limit, 'one'));
  for (let check = 0; check < 100; check += 1) {
    for (const connection of connections) {
      connection.raw.bytesRead += 8203;
      if (check % 2 === 0) continue;
      connection.socket.bytesRead += 16_384;
      connection.contentRecords += 1;
    }
    limit.check();
  }
  assert.ok(connections.every(({ socket }) => !socket.destroyed));
  for (const { socket } of connections) socket.destroy();
});

test('the busiest connection of a network ends first', () => {
  const limit = new RecordLimit();
  const [quiet, busy] = [open(limit, 'one'), open(limit, 'one')];
  quiet.raw.bytesRead += KEY_UPDATE_BYTES;
  busy.raw.bytesRead += 6000 * KEY_UPDATE_BYTES;
  limit.check();
  assert.deepEqual([quiet.socket.destroyed, busy.socket.destroyed], [false, true]);
  quiet.socket.destroy();
});

test('content of before does not pay for records without any', () => {
  const limit = new RecordLimit();
  const raw = { bytesRead: 0 };
  const socket = {
    bytesRead: 0,
    destroyed: false,
    destroy() {
      socket.destroyed = true;
    },
  };
  const connection = { network: 'one', raw, socket, contentRecords: 0 };
  limit.watch(connection);
  raw.bytesRead += 1_000_000;
  socket.bytesRead += 999_000;
  connection.contentRecords += 61;
  limit.check();
  raw.bytesRead += 5700 * KEY_UPDATE_BYTES;
  limit.check();
  assert.equal(socket.destroyed, true);
});

/** The socket of a client that is cut off may report an error first. */
function whenClosed({ socket }: RecordClient): Promise<void> {
  return new Promise((resolve) => void socket.once('close', () => resolve()));
}

function whenAnswered({ socket }: RecordClient, text: string): Promise<void> {
  let answers = Buffer.alloc(0);
  return new Promise((resolve) => {
    socket.on('data', (part: Buffer) => {
      answers = Buffer.concat([answers, part]);
      if (answers.includes(text)) resolve();
    });
  });
}

test('a byte of content pays for its own record alone', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] });
  t.after(() => mock.timers.reset());
  await using running = await startGrpcServer(echoMethods, { tls: createCertificate() });
  const client = await connectRecordClient(running.server.port);
  await changeKeys(client, 6001, BEGINNING_BYTES);
  const closed = whenClosed(client);
  client.send(0, frame(0x42, 0, 0, Buffer.alloc(12_300)));
  await changeKeys(client, 6002);
  mock.timers.tick(100);
  await closed;
});

const ANY_ADDRESS = { skip: process.platform !== 'linux' && '127.0.0.2 is an address of Linux alone' };

test(
  'connections that close before the next check leave a debt, for which handshakes of their network wait',
  ANY_ADDRESS,
  async (t) => {
    await using running = await startGrpcServer(echoMethods, { tls: createCertificate() });
    const { port } = running.server;
    mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
    t.after(() => mock.timers.reset());
    // Each leaves a debt of 16 KB, and 135 KB are allowed.
    for (let connections = 0; connections < 9; connections++) {
      const client = await connectRecordClient(port);
      await changeKeys(client, 600, BEGINNING_BYTES);
      client.socket.destroy();
    }
    // The end of the last connection reaches the server.
    for (let turn = 0; turn < 20; turn++) await endOfTurn();
    const connected: string[] = [];
    const waiting = connectRecordClient(port).then((client) => {
      connected.push('same');
      client.socket.destroy();
    });
    const other = connectTls({ socket: connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }), ...OPTIONS });
    await once(other, 'secureConnect');
    connected.push('other');
    other.destroy();
    mock.timers.tick(2000);
    await waiting;
    assert.deepEqual(connected, ['other', 'same']);
  },
);

test('the debt of a network is forgiven in time, and concerns no other', () => {
  const limit = new RecordLimit();
  const connections = Array.from({ length: 20 }, () => open(limit, 'one'));
  for (const connection of connections) connection.raw.bytesRead += 600 * KEY_UPDATE_BYTES;
  for (const connection of connections) limit.leave(connection);
  assert.ok(limit.delayMs('one') > 1000);
  assert.equal(limit.delayMs('other'), 0);
  for (let check = 0; check < 15; check += 1) limit.check();
  assert.equal(limit.delayMs('one'), 0);
});

test('content that is cut into records of a byte ends the connection, and no other', async () => {
  await using running = await startGrpcServer(echoMethods, { tls: createCertificate() });
  const [client, other] = [
    await connectRecordClient(running.server.port),
    await connectRecordClient(running.server.port),
  ];
  other.send(0, BEGINNING_BYTES);
  const closed = whenClosed(client);
  client.socket.resume();
  client.sendBytes(Buffer.concat([BEGINNING_BYTES, frame(0x42, 0, 0, Buffer.alloc(4000))]));
  await closed;
  const answer = whenAnswered(other, 'the ping');
  other.send(0, Buffer.concat([frame(PING, 0, 0, Buffer.from('the ping'))]));
  await answer;
  other.socket.destroy();
});

test('a client that sends a call byte by byte goes on', async () => {
  await using running = await startGrpcServer(echoMethods, { tls: createCertificate() });
  const client = await connectRecordClient(running.server.port);
  const answer = whenAnswered(client, String(HELLO));
  client.sendBytes(
    Buffer.concat([BEGINNING_BYTES, frame(HEADERS, 4, 1, block()), frame(DATA, 1, 1, frameMessage(HELLO))]),
  );
  await answer;
  client.socket.destroy();
});
