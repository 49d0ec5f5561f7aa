/** Pipelined requests: some are accepted, many end the connection, and few begin in a turn of the event loop. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { type HttpServer, listenHttp } from '../http-server.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

async function open({ port }: HttpServer, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

for (const [title, request] of [
  ['requests', REQUEST],
  ['requests with a body', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello'],
] as const)
  test(`of ten thousand ${title} at once on a connection the first are answered, and the connection ends with the last answer`, async () => {
    const http = await listenHttp({ host: '127.0.0.1', port: 0 });
    let handled = 0;
    http.serve((incoming, outgoing) => {
      handled += 1;
      incoming.resume().once('end', () => setImmediate(() => outgoing.end('answer')));
    });
    const socket = await open(http);
    const answered = text(socket);
    socket.write(request.repeat(10_000));
    const answers = (await answered).split('HTTP/1.1 200 OK').slice(1);
    assert.deepEqual([answers.length, handled], [32, 32]);
    assert.match(answers.at(-1)!, /Connection: close/);
    assert.ok(answers.slice(0, -1).every((answer) => answer.includes('keep-alive')));
    await http.drain(0);
  });

test('ten thousand requests that expect what is not known end their connection early', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  http.serve((_, outgoing) => outgoing.end('answer'));
  const socket = await open(http);
  const answered = text(socket);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n'.repeat(10_000));
  assert.equal((await answered).split('HTTP/1.1 417').length - 1, 32);
  await http.drain(0);
});

test('a client that sends ahead less than the limit is answered as long as it goes on', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  http.serve((_, outgoing) => setImmediate(() => outgoing.end('answer')));
  const socket = await open(http);
  let answers = 0;
  socket.on('data', (part: Buffer) => {
    answers += String(part).split('HTTP/1.1 200 OK').length - 1;
  });
  for (let batch = 1; batch <= 20; batch += 1) {
    socket.write(REQUEST.repeat(32));
    await waitUntil(() => answers === 32 * batch);
  }
  socket.destroy();
  await http.drain(0);
});

test('few of many requests begin in a turn of the event loop, and networks have turns', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  const begun: { readonly address: string; readonly outgoing: ServerResponse }[] = [];
  const turns: number[] = [];
  let isTurnCounted = false;
  http.serve(({ socket }, outgoing) => {
    if (!isTurnCounted) {
      const before = begun.length;
      isTurnCounted = true;
      setImmediate(() => {
        isTurnCounted = false;
        turns.push(begun.length - before);
      });
    }
    begun.push({ address: socket.remoteAddress ?? '', outgoing });
  });
  const crowd = await Promise.all(Array.from({ length: 60 }, () => open(http)));
  const other = await open(http, '127.0.0.2');
  // All connections are accepted once the last one has sent a request.
  other.write(REQUEST);
  await waitUntil(() => begun.length === 1);
  for (const socket of crowd) socket.write(REQUEST.repeat(4));
  other.write(REQUEST);
  await waitUntil(() => begun.length === 242);
  // A turn has the requests that arrived in it, and those that waited.
  assert.ok(Math.max(...turns) <= 32, turns.join(' '));
  const place = begun.findLastIndex(({ address }) => address === '127.0.0.2');
  assert.ok(place <= 64, `begun as number ${place}`);
  for (const { outgoing } of begun) outgoing.end();
  for (const socket of [...crowd, other]) socket.destroy();
  await http.drain(0);
});

test('requests behind an answer that is not read do not begin', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  let begun = 0;
  const large = Promise.withResolvers<void>();
  http.serve((incoming, outgoing) => {
    begun += 1;
    // More bytes of an answer than the kernel buffers.
    outgoing.end(incoming.url === '/large' ? Buffer.alloc(64 * 1024 * 1024) : 'answer');
    if (incoming.url === '/large') large.resolve();
  });
  const socket = await open(http);
  socket.write(`GET /large HTTP/1.1\r\nHost: x\r\n\r\n${REQUEST.repeat(20)}`);
  await large.promise;
  const other = await open(http, '127.0.0.2');
  other.write(`${REQUEST.slice(0, -2)}Connection: close\r\n\r\n`);
  assert.match(await text(other), /answer/);
  assert.equal(begun, 1 + 4);
  socket.resume();
  await waitUntil(() => begun === 22);
  socket.destroy();
  await http.drain(0);
});
