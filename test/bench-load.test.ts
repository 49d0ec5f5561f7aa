import assert from 'node:assert/strict';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { openConnection } from '../bench/predict/grpc-load.ts';
import { createRequests } from '../bench/predict/messages.ts';
import { waitUntil } from './support/basics/wait-until.ts';

test('the load generator sends its messages in turns', async () => {
  let received = '';
  const server = createServer((socket) => socket.on('data', (chunk) => (received += chunk.toString('latin1'))));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const [message, ...others] = ['first-message', 'other-message', 'third-message'].map((text) => Buffer.from(text));
  const connection = await openConnection({ host: '127.0.0.1', port, path: '/a.B/C', message: message!, others });
  for (let call = 0; call < 3; call += 1) connection.send(() => {});
  await waitUntil(() => ['first', 'other', 'third'].every((word) => received.includes(`${word}-message`)));
  connection.close();
  server.close();
});

test('createRequests() returns equally long requests of different loads', () => {
  const requests = createRequests(64);
  assert.equal(new Set(requests.map(({ length }) => length)).size, 1);
  assert.ok(new Set(requests.map((bytes) => Buffer.from(bytes).toString('hex'))).size > 50);
});
