/** TLS connections that are busy with records without content end; those with content, however small, do not. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mock, test } from 'node:test';
import { createCertificate } from '../../../test/support/basics/certificate.ts';
import { echoMethods, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import { BEGINNING, frame, PING } from '../../../test/support/grpc/http2-frames.ts';
import { connectRecordClient, type RecordClient } from '../../../test/support/network/tls-records.ts';
import { RecordLimit } from './record-limit.ts';

const KEY_UPDATE_BYTES = 27;

/** Sends a ping behind this many changes of keys, and resolves with its answer: the server has read all of them. */
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
  await changeKeys(client, 4000, Buffer.concat(BEGINNING.map((part) => Buffer.from(part))));
  mock.timers.tick(100);
  // Half a second forgives 2,500 of them.
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
  limit.watch({ network: 'one', raw, socket });
  for (let check = 0; check < 100; check++) {
    raw.bytesRead += 100_000 * 23;
    socket.bytesRead += 100_000;
    limit.check();
  }
  socket.destroyed = true;
  limit.check();
});

/** A connection without content, by what the limit sees of it. */
function open(limit: RecordLimit, network: string) {
  const socket = {
    bytesRead: 0,
    destroyed: false,
    destroy() {
      socket.destroyed = true;
    },
  };
  const connection = { network, raw: { bytesRead: 0 }, socket };
  limit.watch(connection);
  return connection;
}

/** Connections that each change their keys so often between two checks; returns how many are left after 60 checks. */
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
  // Each is far below the 500 that one may send between two checks.
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
    for (const { raw, socket } of connections) {
      raw.bytesRead += 8203;
      if (check % 2 === 1) socket.bytesRead += 16_384;
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
  limit.watch({ network: 'one', raw, socket });
  raw.bytesRead += 1_000_000;
  socket.bytesRead += 999_000;
  limit.check();
  raw.bytesRead += 5700 * KEY_UPDATE_BYTES;
  limit.check();
  assert.equal(socket.destroyed, true);
});
