/** At the limit of connections, a client that makes progress keeps its place while others have stopped. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { waitUntil } from '../../test/support/basics/wait-until.ts';
import { readUntilTaken } from '../../test/support/network/read-slowly.ts';
import { PROGRESS_BYTES } from '../connections/socket-progress.ts';
import type { CountedMessage } from './chunk-limit.ts';
import { listenHttp } from './http-server.ts';

async function open(port: number, text = ''): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' }).on('error', () => {});
  await once(socket, 'connect');
  if (text !== '') socket.write(text);
  return socket;
}

const LARGER_THAN_SOCKETS_HOLD = 64 * 1024 * 1024;
const REST = ' HTTP/1.1\r\nHost: x\r\n\r\n';
const HEAD = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n';

for (const [title, isAnswered] of [
  ['the rest of a request that has just begun', false],
  ['a reader of an answer that has just been written', true],
] as const)
  test(`beyond the limit, the oldest connection, which waits for ${title}, is not replaced`, async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    let nowMs = 0;
    const http = await listenHttp({ host: '127.0.0.1', port: 0, maxConnections: 3, monotonicMs: () => nowMs });
    t.after(() => http.drain(0));
    const arrived = new EventEmitter();
    http.serve((incoming, outgoing) => {
      if (incoming.url === '/short') outgoing.end('answer');
      else arrived.emit('request', outgoing);
    });
    const arrive = async (): Promise<ServerResponse> => ((await once(arrived, 'request')) as [ServerResponse])[0];
    const sockets: Socket[] = [];
    const begin = (socket: Socket, head: string): Promise<ServerResponse> => {
      socket.write(head);
      return arrive();
    };
    for (let index = 0; index < 3; index++) sockets.push(await open(http.port));
    const [oldest, second, third] = sockets as [Socket, Socket, Socket];
    const work = isAnswered ? await begin(oldest, `GET /large${REST}`) : undefined;
    nowMs += 100;
    await begin(third, HEAD);
    nowMs += 100;
    await begin(second, HEAD);
    nowMs += 5000;
    if (work === undefined) await begin(oldest, HEAD);
    else work.end(Buffer.alloc(LARGER_THAN_SOCKETS_HOLD));
    const closed = once(third.resume(), 'close');
    const asking = await open(http.port, `GET /short${REST}`);
    assert.match(String((await once(asking, 'data'))[0]), /answer/);
    await closed;
    assert.deepEqual([oldest.closed, second.closed], [false, false]);
    for (const socket of [asking, ...sockets]) socket.destroy();
  });

test('beyond the limit, a connection that was opened just now is not replaced while others have waited for seconds', async (t) => {
  let nowMs = 0;
  const http = await listenHttp({ host: '127.0.0.1', port: 0, maxConnections: 3, monotonicMs: () => nowMs });
  t.after(() => http.drain(0));
  const arrived = new EventEmitter();
  http.serve((incoming, outgoing) => {
    if (incoming.method === 'GET') outgoing.end('answer');
    else arrived.emit('request');
  });
  const halfSent: Socket[] = [];
  for (let index = 0; index < 2; index++) {
    const [socket] = await Promise.all([open(http.port, HEAD), once(arrived, 'request')]);
    halfSent.push(socket);
  }
  nowMs += 5000;
  const fresh = await open(http.port);
  const closed = once(halfSent[0]!.resume(), 'close');
  for (const socket of [await open(http.port), fresh]) {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    assert.match(String(await buffer(socket)), /answer/);
  }
  await closed;
  assert.ok(!halfSent[1]!.closed);
});

const LARGE_BODY = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n`;

async function upload(client: Socket, { socket }: IncomingMessage): Promise<void> {
  const before = socket.bytesRead;
  client.write(Buffer.alloc(PROGRESS_BYTES));
  await waitUntil(() => socket.bytesRead >= before + PROGRESS_BYTES);
}

function download(client: Socket, { socket }: IncomingMessage): Promise<void> {
  return readUntilTaken(client, socket, PROGRESS_BYTES, []);
}

for (const [title, head, begin, goOn] of [
  ['uploads without a pause', LARGE_BODY, (incoming) => void incoming.resume(), upload],
  [
    'reads a large answer without a pause',
    `GET /large${REST}`,
    (_, outgoing) => void outgoing.end(Buffer.alloc(LARGER_THAN_SOCKETS_HOLD)),
    download,
  ],
  [
    'may not send the rest of its body before the server reads it',
    LARGE_BODY + 'x'.repeat(200_000),
    () => {},
    (_, incoming) => waitUntil(() => (incoming as CountedMessage).isHeldBack),
  ],
  [
    'may not send its body before its turn',
    LARGE_BODY,
    (incoming) => void (incoming as CountedMessage).hold(),
    async () => {},
  ],
] as readonly [
  title: string,
  head: string,
  begin: (incoming: IncomingMessage, outgoing: ServerResponse) => void,
  goOn: (client: Socket, incoming: IncomingMessage) => Promise<unknown>,
][])
  test(`beyond the limit, a client that ${title} is not replaced before one that stopped later`, async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    let nowMs = 0;
    const http = await listenHttp({ host: '127.0.0.1', port: 0, maxConnections: 2, monotonicMs: () => nowMs });
    t.after(() => http.drain(0));
    const requests = new EventEmitter();
    let isFirst = true;
    http.serve((incoming, outgoing) => {
      if (incoming.url === '/short') outgoing.end('answer');
      else if (isFirst) begin(incoming, outgoing);
      isFirst = false;
      requests.emit('begin', incoming);
    });
    const request = async (text: string): Promise<[Socket, IncomingMessage]> => {
      const [client, [incoming]] = await Promise.all([open(http.port, text), once(requests, 'begin')]);
      return [client, incoming];
    };
    const [busy, incoming] = await request(head);
    let stopped: Socket | undefined;
    for (let half = 0; half < 6; half++) {
      if (half === 2) [stopped] = await request(`${HEAD}five!`);
      nowMs += 500;
      await goOn(busy, incoming);
      t.mock.timers.tick(500);
    }
    const replaced = Promise.race([
      once(busy, 'close').then(() => 'busy'),
      once(stopped!, 'close').then(() => 'stopped'),
    ]);
    const asking = await open(http.port, `GET /short${REST}`);
    const [answer] = (await Promise.race([once(asking, 'data'), once(asking, 'close')])) as [Buffer];
    assert.match(String(answer), /answer/);
    // The end of a connection arrives after its unread bytes.
    for (const socket of [busy, stopped!]) socket.resume();
    assert.equal(await replaced, 'stopped');
    for (const socket of [asking, busy]) socket.destroy();
  });
