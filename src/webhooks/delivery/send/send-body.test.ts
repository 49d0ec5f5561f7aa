/** The memory of a body may be freed once the receiver has answered and the whole body has left this process. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startRawReceiver } from '../../../../test/support/network/raw-receiver.ts';
import { startReceiver } from '../../../../test/support/network/receiver.ts';
import { deliveryTo, OK, openSender } from '../../../../test/support/webhooks/test-sender.ts';
import { releaseBytes } from '../../../database/release-bytes.ts';

const BODY_BYTES = 8_388_608;

/** The body has its own memory, not a view on a shared pool. */
function createBody(text: string): Buffer {
  const body = Buffer.from(new ArrayBuffer(BODY_BYTES));
  return body.fill(text);
}

test('a body that the receiver has read may be freed, and the next one on the connection comes whole', async () => {
  await using receiver = await startReceiver();
  await using sender = openSender();
  for (const text of ['first', 'second']) {
    const body = createBody(text);
    let calls = 0;
    const onBodySent = () => {
      calls += 1;
      releaseBytes(body);
    };
    const report = await sender.send({ ...deliveryTo(receiver.url), body, onBodySent });
    assert.deepEqual([report.outcome.kind, calls, body.byteLength], ['accepted', 1, 0]);
    sender.letRest();
  }
  const [first, second] = receiver.received;
  assert.equal(first?.remotePort, second?.remotePort, 'the connection was kept');
  assert.ok(first?.body.equals(createBody('first')) && second?.body.equals(createBody('second')));
});

test('a body is not freed when the receiver answers before it has read it', async () => {
  await using receiver = await startRawReceiver((socket) => {
    socket.once('data', () => {
      socket.pause();
      socket.write(OK);
    });
  });
  await using sender = openSender();
  let calls = 0;
  const onBodySent = () => {
    calls += 1;
  };
  const report = await sender.send({ ...deliveryTo(receiver.url), body: createBody('early'), onBodySent });
  assert.deepEqual([report.status, calls], [200, 0], 'the system still reads the body');
});
