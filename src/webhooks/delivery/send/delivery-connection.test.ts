import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { onRequest, startRawReceiver } from '../../../../test/support/network/raw-receiver.ts';
import { answerWith, deliveryTo, OK, openSender } from '../../../../test/support/webhooks/test-sender.ts';

const FAILED = 'HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n';

/** A receiver that responds 200 on its first connection and 500 on all others; adds its connections to `sockets`. */
function startWithOneSuccess(sockets: Socket[]) {
  return startRawReceiver((socket, index) => {
    sockets.push(socket);
    onRequest(socket, () => void socket.write(index === 0 ? OK : FAILED));
  });
}

test('a second answer together with the first is not taken for that to the next delivery', async () => {
  await using receiver = await startRawReceiver((socket, index) => {
    const answer = index === 0 ? OK + OK : FAILED;
    onRequest(socket, () => void socket.write(answer));
  });
  await using sender = openSender();
  assert.equal((await sender.send(deliveryTo(receiver.url))).status, 200);
  assert.equal((await sender.send(deliveryTo(receiver.url))).status, 500);
  assert.equal(receiver.connections, 2);
});

test('a second answer that comes while the connection is idle ends it', async () => {
  const sockets: Socket[] = [];
  await using receiver = await startWithOneSuccess(sockets);
  await using sender = openSender();
  assert.equal((await sender.send(deliveryTo(receiver.url))).status, 200);
  const [idle] = sockets as [Socket];
  const ended = Promise.race([once(idle, 'end'), once(idle, 'close')]);
  idle.write(OK);
  await ended;
  sender.letRest();
  assert.equal((await sender.send(deliveryTo(receiver.url))).status, 500);
  assert.equal(receiver.connections, 2);
});

test('a second answer that has arrived, but was not read yet, is not taken for that to the next delivery', async () => {
  const sockets: Socket[] = [];
  await using receiver = await startWithOneSuccess(sockets);
  await using sender = openSender();
  assert.equal((await sender.send(deliveryTo(receiver.url))).status, 200);
  sender.letRest();
  // The bytes reach the system at once, and nothing is read before the next delivery is sent.
  sockets[0]?.write(OK);
  assert.equal((await sender.send(deliveryTo(receiver.url))).status, 500);
  assert.equal(receiver.connections, 2);
  sender.letRest();
  await sender.send(deliveryTo(receiver.url));
  assert.equal(receiver.connections, 3, 'connections to this origin are no longer kept');
});

test('a connection is idle for a while before it is used again', async () => {
  await using receiver = await startRawReceiver(answerWith(OK));
  await using sender = openSender();
  for (let count = 0; count < 2; count += 1) await sender.send(deliveryTo(receiver.url));
  assert.equal(receiver.connections, 2, 'a second answer may follow the first');
  sender.letRest();
  for (let count = 0; count < 2; count += 1) await sender.send(deliveryTo(receiver.url));
  assert.equal(receiver.connections, 2);
});

test('a connection on which interim answers came is not used again', async () => {
  for (const interim of ['HTTP/1.1 103 Early Hints\r\n\r\n', 'HTTP/1.1 100 Continue\r\n\r\n']) {
    await using receiver = await startRawReceiver(answerWith(interim + OK));
    await using sender = openSender();
    for (let count = 0; count < 2; count += 1) {
      assert.equal((await sender.send(deliveryTo(receiver.url))).status, 200);
      sender.letRest();
    }
    assert.equal(receiver.connections, 2);
  }
});

test('a second answer that looks like that to the next request makes that delivery doubtful', async () => {
  const doubted = Promise.withResolvers<readonly number[]>();
  const sockets: Socket[] = [];
  await using receiver = await startRawReceiver((socket) => {
    sockets.push(socket);
    onRequest(socket, () => void socket.write(OK));
  });
  await using sender = openSender({ onDoubt: (ids) => doubted.resolve(ids) });
  await sender.send({ ...deliveryTo(receiver.url), deliveryId: 11 });
  sender.letRest();
  // The second request got another answer to the first; its own answer follows.
  assert.equal((await sender.send({ ...deliveryTo(receiver.url), deliveryId: 12 })).status, 200);
  sockets[0]?.write('HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n');
  assert.deepEqual(await doubted.promise, [12]);
  await sender.send({ ...deliveryTo(receiver.url), deliveryId: 13 });
  sender.letRest();
  await sender.send({ ...deliveryTo(receiver.url), deliveryId: 14 });
  assert.equal(receiver.connections, 3, 'this origin gets no kept connections any more');
});

test('a receiver that ends an idle connection with 408 makes no delivery doubtful', async () => {
  const doubted: number[] = [];
  const sockets: Socket[] = [];
  await using receiver = await startRawReceiver((socket) => {
    sockets.push(socket);
    onRequest(socket, () => void socket.write(OK));
  });
  await using sender = openSender({ onDoubt: (ids) => void doubted.push(...ids) });
  const send = async (deliveryId: number) => {
    assert.equal((await sender.send({ ...deliveryTo(receiver.url), deliveryId })).status, 200);
    sender.letRest();
  };
  await send(11);
  await send(12);
  const [idle] = sockets as [Socket];
  const ended = Promise.race([once(idle, 'end'), once(idle, 'close')]);
  idle.write('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
  await ended;
  assert.deepEqual(doubted, []);
  await send(13);
  await send(14);
  assert.equal(receiver.connections, 2, 'the connections of this origin are still kept');
});

test('an attempt on a kept connection that the receiver closed does not count as failed', async () => {
  await using receiver = await startRawReceiver((socket) => {
    onRequest(socket, (index) => {
      if (index === 0) socket.write(OK);
      else socket.resetAndDestroy();
    });
  });
  await using sender = openSender();
  for (let count = 0; count < 5; count += 1) {
    assert.equal((await sender.send(deliveryTo(receiver.url))).status, 200);
    sender.letRest();
  }
  assert.equal(receiver.connections, 5);
});
