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
  limit.watch({ raw, socket });
  for (let check = 0; check < 100; check++) {
    raw.bytesRead += 100_000 * 23;
    socket.bytesRead += 100_000;
    limit.check();
  }
  socket.destroyed = true;
  limit.check();
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
  limit.watch({ raw, socket });
  raw.bytesRead += 1_000_000;
  socket.bytesRead += 999_000;
  limit.check();
  raw.bytesRead += 5001 * KEY_UPDATE_BYTES;
  limit.check();
  assert.equal(socket.destroyed, true);
});
