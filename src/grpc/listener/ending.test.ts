/** A client that ends its connection gets the answers under way, and cannot keep the connection open. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, mock, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { ECHO_PATH, echo, HELLO, startGrpcServer, unary } from '../../../test/support/grpc/grpc-server.ts';
import {
  BEGINNING,
  block,
  DATA,
  frame,
  frameMessage,
  GOAWAY,
  HEADERS,
  PING,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../../test/support/grpc/http2-frames.ts';

const GOODBYE = frame(GOAWAY, 0, 0, Buffer.alloc(8));
const CALL = [frame(HEADERS, 4, 1, block(ECHO_PATH)), frame(DATA, 1, 1, frameMessage(HELLO))];
const MORE_THAN_SOCKETS_HOLD = 32 * 1024 * 1024;

afterEach(() => mock.timers.reset());

test('a client that said goodbye and reads nothing more is closed within seconds, though it goes on sending', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const started = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const slow = unary(async () => {
    started.resolve();
    await finish.promise;
    return Buffer.alloc(MORE_THAN_SOCKETS_HOLD);
  });
  await using running = await startGrpcServer([slow]);
  const client = await FlowClient.connect(running.server.port);
  client.send(
    frame(SETTINGS, 0, 0, Buffer.from('00047fffffff', 'hex')),
    frame(WINDOW_UPDATE, 0, 0, Buffer.from('3fffffff', 'hex')),
    ...CALL,
    GOODBYE,
  );
  await started.promise;
  client.socket.pause();
  finish.resolve();
  const dripped = frame(PING, 0, 0, Buffer.alloc(8));
  for (let second = 0; second < 10; second++) {
    client.socket.write(dripped.subarray(second, second + 1));
    for (let turn = 0; turn < 50; turn++) await setImmediate();
    mock.timers.tick(1000);
  }
  client.socket.resume();
  await client.closed;
  assert.equal(client.endOf(1), undefined);
});

test('a client that said goodbye and sends without end is closed', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  await using running = await startGrpcServer([echo]);
  const client = connect({ port: running.server.port, host: '127.0.0.1', allowHalfOpen: true });
  client.on('error', () => {});
  const closed = new Promise((resolve) => client.once('close', resolve));
  for (const part of [...BEGINNING, ...CALL, GOODBYE]) client.write(part);
  await once(client.resume(), 'end');
  client.write(Buffer.alloc(MORE_THAN_SOCKETS_HOLD));
  await closed;
});
