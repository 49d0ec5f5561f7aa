/** Requests whose end two parsers could see in different places, and other protocols, are refused, and the connection ends. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { listenHttp } from './http-server.ts';

const POST = 'POST / HTTP/1.1\r\nHost: x\r\n';
const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';

const refused: [title: string, request: string, answer: RegExp][] = [
  [
    'a length and chunks',
    `${POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
    /^HTTP\/1\.1 400 /,
  ],
  ['two lengths', `${POST}Content-Length: 5\r\nContent-Length: 0\r\n\r\nhello${SMUGGLED}`, /^HTTP\/1\.1 400 /],
  ['a length with a sign', `${POST}Content-Length: +5\r\n\r\nhello${SMUGGLED}`, /^HTTP\/1\.1 400 /],
  [
    'chunks that are not the last encoding',
    `${POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${SMUGGLED}`,
    /^HTTP\/1\.1 400 /,
  ],
  ['an unknown encoding', `${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${SMUGGLED}`, /^HTTP\/1\.1 400 /],
  ['a space before a colon', `${POST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`, /^HTTP\/1\.1 400 /],
  ['a field over two lines', `${POST}X: a\r\n Transfer-Encoding: chunked\r\n\r\n${SMUGGLED}`, /^HTTP\/1\.1 400 /],
  ['a lone CR in a field', `${POST}X: a\rTransfer-Encoding: chunked\r\n\r\n${SMUGGLED}`, /^HTTP\/1\.1 400 /],
  [
    'a chunk with a sign',
    `${POST}Transfer-Encoding: chunked\r\n\r\n+1\r\na\r\n0\r\n\r\n${SMUGGLED}`,
    /^HTTP\/1\.1 400 |^$/,
  ],
  [
    'a chunk that is longer than it says',
    `${POST}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n${SMUGGLED}`,
    /^HTTP\/1\.1 400 |^$/,
  ],
  [
    'a chunk with 100 KB of extensions',
    `${POST}Transfer-Encoding: chunked\r\n\r\n1;${'a'.repeat(100_000)}\r\na\r\n0\r\n\r\n${SMUGGLED}`,
    /^HTTP\/1\.1 413 |^$/,
  ],
  [
    '100 KB of trailers',
    `${POST}Transfer-Encoding: chunked\r\n\r\n0\r\nX: ${'a'.repeat(100_000)}\r\n\r\n${SMUGGLED}`,
    /^HTTP\/1\.1 431 |^$/,
  ],
  ['CONNECT', `CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n${SMUGGLED}`, /^$/],
  ['the preface of HTTP/2', `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${SMUGGLED}`, /^HTTP\/1\.1 [45]0\d |^$/],
  ['TLS', `\u0016\u0003\u0001\u0002\u0000\u0001\u0000`, /^HTTP\/1\.1 400 /],
];

/** Returns the answer of the server, and the paths that it handled. */
async function send(request: string) {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  const paths: string[] = [];
  http.serve((incoming, outgoing) => {
    paths.push(incoming.url ?? '');
    incoming.on('error', () => {});
    incoming.resume().on('end', () => outgoing.end('whole'));
  });
  const socket = connect(http.port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(request, 'latin1');
  const answer = await text(socket).catch(() => '');
  await http.drain(0);
  return { answer, paths };
}

for (const [title, request, expected] of refused)
  test(`a request with ${title} is refused, and nothing after it is handled`, async () => {
    const { answer, paths } = await send(request);
    assert.match(answer, expected);
    assert.ok(!paths.includes('/smuggled'), paths.join(' '));
  });

test('an upgrade to HTTP/2 that a client offers is answered as HTTP/1.1', async () => {
  const offer = 'Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n';
  const { answer, paths } = await send(`GET /x HTTP/1.1\r\nHost: x\r\n${offer}\r\n`);
  assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*whole/);
  assert.deepEqual(paths, ['/x']);
});

test('an expectation that is not known is refused with 417', async () => {
  const { answer } = await send(`${POST}Connection: close\r\nExpect: 200-ok\r\nContent-Length: 0\r\n\r\n`);
  assert.match(answer, /^HTTP\/1\.1 417 /);
});

test('a request with two Host fields is refused with 400', async () => {
  const { answer, paths } = await send('GET / HTTP/1.1\r\nHost: x\r\nhOST: y\r\n\r\n');
  assert.match(answer, /^HTTP\/1\.1 400 .*two Host fields/s);
  assert.deepEqual(paths, []);
});

test('a request with two Host fields and a body is refused before its body has come, and ends with it', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  const socket = connect(http.port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(`${POST}Host: y\r\nContent-Length: 1000000\r\n\r\nbegin`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  assert.match(String(answer), /^HTTP\/1\.1 400 .*two Host fields/s);
  const closed = once(socket, 'close');
  // Rejects when the server resets the connection.
  socket.end(Buffer.alloc(1_000_000 - 'begin'.length, 'b'));
  await closed;
  await http.drain(0);
});
