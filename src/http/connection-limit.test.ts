import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { listenHttp } from './http-server.ts';

async function open(port: number, text = '', localAddress?: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', ...(localAddress === undefined ? {} : { localAddress }) });
  socket.on('error', () => {});
  await once(socket, 'connect');
  if (text !== '') socket.write(text);
  return socket;
}

const LARGER_THAN_SOCKETS_HOLD = 64 * 1024 * 1024;
const REST = ' HTTP/1.1\r\nHost: x\r\n\r\n';
const HEAD = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n';

test('beyond the limit, a new connection takes the place of the oldest without a request', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0, maxConnections: 2 });
  const arrived = Promise.withResolvers<void>();
  http.serve((incoming, outgoing) => {
    if (incoming.url === '/wait') arrived.resolve();
    else outgoing.end('answer');
  });
  const waiting = await open(http.port, 'GET /wait HTTP/1.1\r\nHost: x\r\n\r\n');
  await arrived.promise;
  const silent = await open(http.port);
  const closed = once(silent.resume(), 'close');
  const asking = await open(http.port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const [answer] = (await once(asking, 'data')) as [Buffer];
  assert.match(String(answer), /answer/);
  await closed;
  assert.ok(!waiting.closed);
  await http.drain(0);
});

for (const [title, text = ''] of [
  ['the rest of a request', `${HEAD}five!`],
  ['a reader of its answer', `GET /large${REST}`],
  ['a reader of its answers', `GET /large${REST}${`GET /short${REST}`.repeat(6)}`],
  ['a reader of its answer, and has work behind it', `GET /large${REST}GET /work${REST}`],
])
  test(`beyond the limit, a new connection replaces a connection that waits for ${title}`, async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    let nowMs = 0;
    const http = await listenHttp({ host: '127.0.0.1', port: 0, maxConnections: 2, monotonicMs: () => nowMs });
    t.after(() => http.drain(0));
    const arrived = new EventEmitter();
    http.serve((incoming, outgoing) => {
      if (incoming.url === '/large') outgoing.end(Buffer.alloc(LARGER_THAN_SOCKETS_HOLD));
      if (incoming.url === '/short') outgoing.end('answer');
      arrived.emit('request');
    });
    const beginRequest = async (head: string): Promise<Socket> => {
      const [socket] = await Promise.all([open(http.port, head), once(arrived, 'request')]);
      return socket;
    };
    const working = await beginRequest('GET /work HTTP/1.1\r\nHost: x\r\n\r\n');
    const waiting = await beginRequest(text);
    nowMs += 1000;
    const closed = once(waiting, 'close');
    const asking = await open(http.port, 'GET /short HTTP/1.1\r\nHost: x\r\n\r\n');
    const [answer] = (await Promise.race([once(asking, 'data'), once(asking, 'close')])) as [Buffer];
    assert.match(String(answer), /answer/);
    assert.ok(!working.closed);
    waiting.resume();
    await closed;
  });

const ATTACKER = '127.0.0.66';
const PROXY = '127.0.0.67';

test('beyond the limit, a network with many connections pushes out its own, not the idle one of another', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0, maxConnections: 4 });
  http.serve((_, outgoing) => void outgoing.end('answer'));
  const ask = async (socket: Socket): Promise<void> => {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket, 'data');
  };
  const idle = await open(http.port);
  await ask(idle);
  const attackers: Socket[] = [];
  for (let index = 0; index < 6; index++) {
    const socket = await open(http.port, '', ATTACKER);
    await ask(socket);
    attackers.push(socket);
  }
  const gone = attackers.slice(0, 3).filter(({ closed }) => !closed);
  await Promise.all(gone.map((socket) => once(socket, 'close')));
  await ask(idle);
  assert.ok(!idle.closed);
  await http.drain(0);
});

test('beyond the limit, a network whose connections are all busy does not keep out another', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0, maxConnections: 3 });
  const arrived = new EventEmitter();
  http.serve((incoming, outgoing) => {
    if (incoming.url === '/wait') arrived.emit('request');
    else outgoing.end('answer');
  });
  const busy: Socket[] = [];
  for (let index = 0; index < 3; index++) {
    const head = 'GET /wait HTTP/1.1\r\nHost: x\r\n\r\n';
    const [socket] = await Promise.all([open(http.port, head, ATTACKER), once(arrived, 'request')]);
    busy.push(socket);
  }
  const closed = once(busy[2]!, 'close');
  const [answer] = (await once(await open(http.port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'), 'data')) as [Buffer];
  assert.match(String(answer), /answer/);
  await closed;
  assert.deepEqual(
    busy.map((socket) => socket.closed),
    [false, false, true],
  );
  await http.drain(0);
});

test('beyond the limit, a stranger does not take the place of a request that came through a trusted proxy', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0, maxConnections: 3, trustedProxies: [PROXY] });
  const arrived = new EventEmitter();
  http.serve((_, outgoing) => arrived.emit('request', outgoing));
  const proxied: Socket[] = [];
  const answers: ServerResponse[] = [];
  for (let index = 0; index < 3; index++) {
    const [socket, [outgoing]] = await Promise.all([
      open(http.port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', PROXY),
      once(arrived, 'request') as Promise<[ServerResponse]>,
    ]);
    proxied.push(socket);
    answers.push(outgoing);
  }
  const stranger = await open(http.port);
  await once(stranger.resume(), 'close');
  const read = proxied.map((socket) => once(socket, 'data'));
  for (const outgoing of answers) outgoing.end('answer');
  for (const [answer] of await Promise.all(read)) assert.match(String(answer), /answer/);
  await http.drain(0);
});

for (const [what, text] of [
  ['head', HEAD.slice(0, 20)],
  ['body', `${HEAD}five!`],
])
  test(`a request whose ${what} does not come is answered with 408`, async () => {
    const http = await listenHttp({ host: '127.0.0.1', port: 0, headTimeoutMs: 50, requestTimeoutMs: 60 });
    http.serve(() => {});
    const socket = await open(http.port, text);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    assert.match(String(answer), /408 Request Timeout/);
    await http.drain(0);
  });

test('a client that takes nothing more of its answer loses its connection, and one that waits for its answer does not', async (t) => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0, unreadTimeoutMs: 200 });
  t.after(() => http.drain(0));
  const unread = Promise.withResolvers<void>();
  http.serve((incoming, outgoing) => {
    if (incoming.url === '/large') {
      outgoing.end(Buffer.alloc(LARGER_THAN_SOCKETS_HOLD));
      outgoing.once('close', () => unread.resolve());
    } else void unread.promise.then(() => outgoing.end('answer'));
  });
  const waiting = await open(http.port, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
  const answer = once(waiting, 'data');
  const client = await open(http.port, 'GET /large HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.match(String((await answer)[0]), /answer/);
  assert.equal(client.readableFlowing, null);
  client.destroy();
  waiting.destroy();
});
