import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { listenHttp } from './http-server.ts';

const HEAD = 'POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n';

function chunks(count: number, bytes: number): string {
  return `${bytes.toString(16)}\r\n${'a'.repeat(bytes)}\r\n`.repeat(count);
}

/** The answer to the body, and how many parts of it the server handled. */
async function send(body: string, answer: 'late' | 'early' = 'late') {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  let parts = 0;
  http.serve((incoming, outgoing) => {
    incoming.on('data', () => parts++);
    if (answer === 'early') outgoing.write('answer');
    incoming.on('end', () => outgoing.end('whole'));
  });
  const socket = connect(http.port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(HEAD + body);
  const answered = await text(socket).catch(String);
  await http.drain(0);
  return { answered, parts };
}

test('a body of many chunks of a byte is refused, and no more of them is parsed', async () => {
  const { answered, parts } = await send(chunks(100_000, 1));
  assert.match(answered, /^HTTP\/1\.1 400 [\s\S]*its chunks must have 64 bytes on average/);
  assert.equal(parts, 1024);
});

test('a body of many chunks that was answered before its end ends with its connection', async () => {
  const { answered, parts } = await send(chunks(100_000, 1), 'early');
  assert.match(answered, /^HTTP\/1\.1 200 [\s\S]*answer/);
  assert.doesNotMatch(answered, /400 Bad Request|whole/);
  assert.equal(parts, 1024);
});

test('the refusal of a body is not written in place of the answer to an earlier request', async () => {
  const http = await listenHttp({ host: '127.0.0.1', port: 0 });
  http.serve(() => {});
  const socket = connect(http.port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(`GET / HTTP/1.1\r\nHost: x\r\n\r\n${HEAD}${chunks(100_000, 1)}`);
  assert.doesNotMatch(await text(socket).catch(String), /HTTP/);
  await http.drain(0);
});

for (const [title, body, parts] of [
  ['a thousand chunks of a byte', chunks(1024, 1), 1024],
  ['ten thousand chunks of 64 bytes', chunks(10_000, 64), 10_000],
] as const)
  test(`a body of ${title} is taken`, async () => {
    const { answered, parts: handled } = await send(`${body}0\r\n\r\n`);
    assert.match(answered, /^HTTP\/1\.1 200 [\s\S]*whole/);
    // A read may end in the middle of a chunk.
    assert.ok(handled >= parts, String(handled));
  });
