/** A client that ends its connection gets the answers under way, and cannot keep the connection open. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterEach, mock, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { createCertificate } from '../../../test/support/basics/certificate.ts';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import {
  clientStream,
  ECHO_PATH,
  echo,
  HELLO,
  SERVICE,
  startGrpcServer,
  unary,
} from '../../../test/support/grpc/grpc-server.ts';
import {
  BEGINNING,
  block,
  DATA,
  frame,
  frameMessage,
  GOAWAY,
  HEADERS,
  PING,
  PREFACE,
  readFrames,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../../test/support/grpc/http2-frames.ts';
import { readSome } from '../../../test/support/network/read-slowly.ts';
import type { GrpcMethod } from '../call/service.ts';

const GOODBYE = frame(GOAWAY, 0, 0, Buffer.alloc(8));
const CALL = [frame(HEADERS, 4, 1, block(ECHO_PATH)), frame(DATA, 1, 1, frameMessage(HELLO))];
const WIDE_WINDOWS = [
  frame(SETTINGS, 0, 0, Buffer.from('00047fffffff', 'hex')),
  frame(WINDOW_UPDATE, 0, 0, Buffer.from('3fffffff', 'hex')),
];
const UNFINISHED = frame(HEADERS, 4, 3, block(`/${SERVICE}/Collect`));
const MORE_THAN_SOCKETS_HOLD = 32 * 1024 * 1024;

/** The method of the unfinished call, which ends once the server has noticed that the client has ended its side. */
const collect = (close: () => void): GrpcMethod => clientStream('Collect', () => ({ close }));

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
  client.send(...WIDE_WINDOWS, ...CALL, GOODBYE);
  await started.promise;
  client.socket.pause();
  finish.resolve();
  const dripped = frame(PING, 0, 0, Buffer.alloc(8));
  for (let second = 0; second < 30; second++) {
    client.socket.write(dripped.subarray(second % dripped.length, (second % dripped.length) + 1));
    for (let turn = 0; turn < 50; turn++) await setImmediate();
    mock.timers.tick(1000);
  }
  client.socket.resume();
  await client.closed;
  assert.equal(client.endOf(1), undefined);
});

const TRANSPORTS = [
  ['plaintext', undefined],
  ['TLS', createCertificate()],
] as const;

async function dial(port: number, tls: object | undefined): Promise<Socket> {
  const place = { port, host: '127.0.0.1' };
  if (tls === undefined) return connect(place);
  const client = connectTls({ ...place, rejectUnauthorized: false, ALPNProtocols: ['h2'] });
  await once(client, 'secureConnect');
  return client;
}

for (const [transport, tls] of TRANSPORTS)
  for (const [what, last, end] of [
    ['said goodbye', GOODBYE, () => {}],
    ['ended its side of the connection', UNFINISHED, (client) => client.end()],
  ] as readonly [string, Buffer, (client: Socket) => void][])
    test(`${transport}: a client that ${what} and reads slowly gets its whole answer`, async () => {
      const finish = Promise.withResolvers<void>();
      const answer = Buffer.alloc(MORE_THAN_SOCKETS_HOLD);
      const slow = unary(async () => {
        await finish.promise;
        await setImmediate();
        return answer;
      });
      await using running = await startGrpcServer([slow, collect(finish.resolve)], { tls });
      const client = await dial(running.server.port, tls);
      mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
      const parts: Buffer[] = [];
      // In one record, which is read at once: while an answer is unread, the server reads no more.
      client.write(Buffer.concat([Buffer.from(PREFACE), frame(SETTINGS, 0, 0), ...WIDE_WINDOWS, ...CALL, last]));
      end(client);
      if (last === GOODBYE) finish.resolve();
      for (let second = 0; second < 30; second++) {
        await readSome(client, 128 * 1024, parts);
        for (let turn = 0; turn < 50; turn++) await setImmediate();
        mock.timers.tick(1000);
      }
      parts.push(await buffer(client));
      const data = readFrames(Buffer.concat(parts)).filter(({ type }) => type === DATA);
      assert.equal(
        data.reduce((bytes, { payload }) => bytes + payload.length, 0),
        frameMessage(answer).length,
      );
    });

for (const [transport, tls] of TRANSPORTS)
  test(`${transport}: a client that ends its side of the connection gets the answer under way, and the connection ends`, async () => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    const started = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    const slow = unary((request) => {
      started.resolve();
      return finish.promise.then(() => request);
    });
    const left = Promise.withResolvers<void>();
    await using running = await startGrpcServer([slow, collect(left.resolve)], { tls });
    const client = await dial(running.server.port, tls);
    const answered = buffer(client);
    for (const part of [...BEGINNING, ...CALL, UNFINISHED]) client.write(part);
    client.end();
    await Promise.all([started.promise, left.promise]);
    finish.resolve();
    const frames = readFrames(await answered);
    assert.deepEqual(frames.find(({ type }) => type === DATA)?.payload, frameMessage(HELLO));
    const end = frames.find(({ type, flags, streamId }) => type === HEADERS && streamId === 1 && (flags & 1) === 1);
    assert.match(String(end?.payload), /grpc-status.0/s);
    client.destroy();
  });

/** Before the first keepalive could close the connection. */
const SOME_SECONDS = { timeout: 30_000 };

test(
  'a client that ends its side of the connection is not waited for longer than some seconds',
  SOME_SECONDS,
  async () => {
    const started = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    const never = unary((_, { signal }) => {
      signal.addEventListener('abort', () => aborted.resolve());
      started.resolve();
      return new Promise(() => {});
    });
    const left = Promise.withResolvers<void>();
    await using running = await startGrpcServer([never, collect(left.resolve)]);
    const client = connect({ port: running.server.port, host: '127.0.0.1' }).resume();
    client.on('error', () => {});
    for (const part of [...BEGINNING, ...CALL, UNFINISHED]) client.write(part);
    client.end();
    await Promise.all([started.promise, left.promise]);
    await aborted.promise;
  },
);

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
