/** The memory of a request is freed when its call needs it no more. No count and no call depends on it afterwards. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { HELLO, SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import {
  block,
  DATA,
  frame,
  frameMessage,
  HEADERS,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../../test/support/grpc/http2-frames.ts';
import { encodeHeaderBlock } from '../hpack/hpack-encoder.ts';
import type { GrpcMethod } from './service.ts';

const MESSAGE_BYTES = 4_194_304;
/** The idle blocks of three of these messages are kept; the blocks of the others are freed. */
const CALLS = 6;

let arrived = 0;
const gate = Promise.withResolvers<void>();
const methods: readonly GrpcMethod[] = [
  {
    kind: 'unary',
    name: 'Keep',
    keepsNoBytes: true,
    async handle() {
      arrived += 1;
      if (arrived === CALLS) gate.resolve();
      await gate.promise;
      return HELLO;
    },
  },
  { kind: 'unary', name: 'Count', keepsNoBytes: true, handle: ({ length }) => Buffer.from(String(length)) },
];
const running = await startGrpcServer(methods, { maxMessageBytes: MESSAGE_BYTES, bufferBytes: 32 * MESSAGE_BYTES });
after(() => running[Symbol.asyncDispose]());

function open(streamId: number, method: string): Buffer {
  return frame(HEADERS, 4, streamId, block(`/${SERVICE}/${method}`));
}

test('a connection calls on after large messages whose blocks were freed', async () => {
  const clients = await Promise.all(Array.from({ length: CALLS }, () => FlowClient.connect(running.server.port)));
  const message = frameMessage(Buffer.alloc(MESSAGE_BYTES, 'm'));
  await Promise.all(
    clients.map(async (client) => {
      client.send(open(1, 'Keep'));
      await client.sendData(1, message);
      await client.untilEnded(1);
    }),
  );
  for (const client of clients) {
    client.send(open(3, 'Count'), frame(DATA, 1, 3, frameMessage(HELLO)));
    await client.settle();
  }
  const statuses = clients.map((client) => String(client.endOf(3)?.payload));
  for (const status of statuses) assert.match(status, /grpc-status.0/s);
  for (const { socket } of clients) socket.destroy();
});

test('a small compressed message is answered, though its answer waits for a window', async () => {
  const client = await FlowClient.connect(running.server.port);
  const head = encodeHeaderBlock([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', `/${SERVICE}/Count`],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
    ['grpc-encoding', 'gzip'],
  ]);
  client.send(frame(SETTINGS, 0, 0, Buffer.from('000400000000', 'hex')), frame(HEADERS, 4, 1, head));
  client.send(frame(DATA, 1, 1, frameMessage(gzipSync(Buffer.alloc(100, 'm')), 1)));
  await client.until(() => client.frames.some(({ type, streamId }) => type === HEADERS && streamId === 1));
  client.send(frame(WINDOW_UPDATE, 0, 1, Buffer.from('0000ffff', 'hex')));
  await client.untilEnded(1);
  assert.match(String(client.endOf(1)?.payload), /grpc-status.0/s);
  assert.match(String(client.frames.find(({ type, streamId }) => type === DATA && streamId === 1)?.payload), /100$/);
  client.socket.destroy();
});
