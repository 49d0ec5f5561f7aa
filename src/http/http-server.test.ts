import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { waitUntil } from '../../test/support/basics/wait-until.ts';
import { type HttpServer, listenHttp } from './http-server.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const DEADLINE_MS = 30_000;

async function open({ port }: HttpServer): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

async function ask(socket: Socket): Promise<string> {
  socket.write(REQUEST);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  return String(answer);
}

test('an idle connection is kept for longer than proxies keep it', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  const accepted = Promise.withResolvers<Socket>();
  http.serve((incoming, outgoing) => {
    accepted.resolve(incoming.socket);
    outgoing.end('answer');
  });
  const socket = await open(http);
  assert.match(await ask(socket), /Keep-Alive: timeout=620/);
  const { promise } = accepted;
  await waitUntil(async () => ((await promise).timeout ?? 0) >= 620_000);
  socket.destroy();
  await http.drain(0);
});

test('a stop answers a request that is on its way on an idle connection, and closes the connection then', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  http.serve((_, outgoing) => outgoing.end('answer'));
  const socket = await open(http);
  assert.match(await ask(socket), /Connection: keep-alive.*answer/s);
  const stopped = http.drain(DEADLINE_MS);
  assert.match(await ask(socket), /Connection: close.*answer/s);
  await once(socket.resume(), 'close');
  await stopped;
});

test('a stop closes connections without a request', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  http.serve((_, outgoing) => outgoing.end('answer'));
  const [silent, idle] = await Promise.all([open(http), open(http)]);
  await ask(idle);
  const closed = Promise.all([silent, idle].map((socket) => once(socket.resume(), 'close')));
  await http.drain(DEADLINE_MS);
  await closed;
});

test('a stop waits for a request under way, and closes its connection with the answer', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  const arrived = Promise.withResolvers<ServerResponse>();
  http.serve((_, outgoing) => arrived.resolve(outgoing));
  const socket = await open(http);
  const answer = ask(socket);
  const outgoing = await arrived.promise;
  const stopped = http.drain(DEADLINE_MS);
  await waitUntil(() => isRefused(http));
  outgoing.end('answer');
  assert.match(await answer, /answer/);
  await once(socket.resume(), 'close');
  await stopped;
});

test('a stop answers all requests that came at once on a connection, and closes it with the last answer', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  const arrived: ServerResponse[] = [];
  http.serve((_, outgoing) => arrived.push(outgoing));
  const socket = await open(http);
  const answers = text(socket);
  socket.write(REQUEST + REQUEST);
  await waitUntil(() => arrived.length === 2);
  const stopped = http.drain(DEADLINE_MS);
  socket.write(REQUEST);
  await waitUntil(() => arrived.length === 3);
  for (const [index, outgoing] of arrived.entries()) outgoing.end(`answer ${index}`);
  assert.match(await answers, /answer 0.*answer 1.*Connection: close.*answer 2/s);
  await stopped;
});

test('a stop cuts a request that is not answered by the deadline', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  const arrived = Promise.withResolvers<void>();
  http.serve(() => arrived.resolve());
  const socket = await open(http);
  socket.on('error', () => {}).write(REQUEST);
  await arrived.promise;
  const closed = once(socket, 'close');
  await http.drain(10);
  await closed;
});

function isRefused({ port }: HttpServer): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(true));
    socket.once('connect', () => {
      socket.destroy();
      resolve(false);
    });
  });
}
