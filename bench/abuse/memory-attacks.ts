/** Clients that make the server buffer bytes: requests that do not end, and responses that are not read. */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { deflateSync, gzipSync } from 'node:zlib';
import { encodeHeaderBlock } from '../../src/grpc/hpack/hpack-encoder.ts';
import type { FlowClient } from '../../test/support/grpc/flow-client.ts';
import {
  CONTINUATION,
  DATA,
  frame,
  frameMessage,
  GOAWAY,
  HEADERS,
  RST,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../test/support/grpc/http2-frames.ts';
import { createRequest } from '../predict/messages.ts';
import {
  type Attack,
  crowd,
  flood,
  flowAttack,
  head,
  initialWindow,
  open,
  PREDICT,
  REFLECT,
  REPORT,
  uint32,
  WATCH,
} from './attack.ts';

const MEBIBYTE = 1_048_576;
const LARGE_WINDOW = 0x3fff_ffff;
const zeros = Buffer.alloc(4 * MEBIBYTE);
const gzipBomb = frameMessage(gzipSync(zeros), 1);
const deflateBomb = frameMessage(deflateSync(zeros), 1);
/** The largest possible answer: 4,096 inputs. */
const largeRequest = frameMessage(createRequest(4096));
const BEGINNING = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(SETTINGS, 0, 0)]);
const NO_GRPC = encodeHeaderBlock([
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/'],
  ['content-type', 'text/plain'],
]);
/** ServerReflectionRequest for the file with the largest descriptor. */
const reflection = frameMessage(
  Buffer.concat([Buffer.of(0x22, 34), Buffer.from('prediction.v1.PredictionService   ')]),
);

function ids(count: number): number[] {
  return Array.from({ length: count }, (_, index) => 2 * index + 1);
}

export const memoryAttacks: readonly Attack[] = [
  flowAttack('gzip: 4 KB become 4 MB, 1,000 calls', 1, (client) => sendBombs(client, 'gzip', gzipBomb)),
  flowAttack('gzip on 8 connections', 8, (client) => sendBombs(client, 'gzip', gzipBomb)),
  flowAttack('deflate', 1, (client) => sendBombs(client, 'deflate', deflateBomb)),
  flowAttack('gzip, each call reset', 1, async (client) => {
    for (let id = 1; !client.isClosed; id += 2) {
      client.send(open(id, PREDICT, [['grpc-encoding', 'gzip']]));
      await client.sendData(id, gzipBomb);
      client.send(frame(RST, 0, id, uint32(8)));
      if (id % 50 === 1) await sleep(10);
    }
  }),
  flowAttack('300 messages of 4 MB, not ended', 1, (client) => sendUnfinished(client, PREDICT, 300)),
  flowAttack('300 messages of 4 MB, not ended, on 8 connections', 8, (client) => sendUnfinished(client, PREDICT, 300)),
  flowAttack('1,024 Report streams with half a message', 4, (client) => sendUnfinished(client, REPORT, 1024)),
  flood('DATA of a byte', {
    before: Buffer.concat([open(1, PREDICT), frame(DATA, 0, 1, frameMessage(zeros).subarray(0, 5))]),
    repeated: frame(DATA, 0, 1, Buffer.of(0)),
  }),
  flowAttack('DATA of a byte and 255 of padding', 1, async (client) => {
    const padded = Buffer.alloc(257);
    padded[0] = 255;
    const bytes = Buffer.concat(Array.from({ length: 200 }, () => frame(DATA, 8, 1, padded)));
    client.send(open(1, PREDICT), frame(DATA, 0, 1, frameMessage(zeros).subarray(0, 5)));
    while (!client.isClosed) {
      client.send(bytes);
      await client.settle();
    }
  }),
  flowAttack('answers at window 0', 1, (client) => askUnread(client, 0)),
  flowAttack('answers at window 0, on 8 connections', 8, (client) => askUnread(client, 0)),
  flowAttack('refusals at window 0, on 64 connections', 64, async (client) => {
    client.send(frame(SETTINGS, 0, 0, initialWindow(0)));
    for (const id of ids(1024)) client.send(frame(HEADERS, 5, id, NO_GRPC));
    await client.closed;
  }),
  flowAttack('requests that are no gRPC and do not end, on 64 connections', 64, async (client) => {
    for (const id of ids(1024)) client.send(frame(HEADERS, 4, id, NO_GRPC));
    await client.closed;
  }),
  crowd('calls after GOAWAY', 8, (socket) => {
    // Otherwise the socket would close its side when the server does.
    socket.allowHalfOpen = true;
    socket.write(Buffer.concat([BEGINNING, frame(SETTINGS, 0, 0, initialWindow(LARGE_WINDOW))]));
    socket.write(
      Buffer.concat([frame(WINDOW_UPDATE, 0, 0, uint32(LARGE_WINDOW)), frame(GOAWAY, 0, 0, Buffer.alloc(8))]),
    );
    socket.once('end', () => void callOn(socket));
  }),
  flowAttack('slow read: windows that grow by a byte', 1, async (client) => {
    await askUnread(client, 1, 50);
    for (let id = 1; !client.isClosed; id = (id + 2) % 100) {
      client.send(frame(WINDOW_UPDATE, 0, id, uint32(1)));
      await sleep(1);
    }
  }),
  flowAttack('never reading', 4, async (client) => {
    client.socket.pause();
    await askUnread(client, LARGE_WINDOW);
  }),
  flowAttack('never reading reflection', 4, async (client) => {
    client.send(frame(SETTINGS, 0, 0, initialWindow(LARGE_WINDOW)), frame(WINDOW_UPDATE, 0, 0, uint32(LARGE_WINDOW)));
    client.socket.pause();
    for (const id of ids(100)) {
      client.send(open(id, REFLECT));
      client.sendAllowed(id, Buffer.concat(Array.from({ length: 1000 }, () => reflection)), false);
    }
    await client.closed;
  }),
  flowAttack('1,024 Watch streams on 20 connections', 20, async (client) => {
    for (const id of ids(1024)) client.send(open(id, WATCH), frame(DATA, 1, id, frameMessage(Buffer.alloc(0))));
    await client.closed;
  }),
  crowd('500 connections with half a head', 500, (socket) => {
    socket.write(Buffer.concat([BEGINNING, frame(HEADERS, 0, 1, head(PREDICT, [['x', 'a'.repeat(15_000)]]))]));
    for (let part = 0; part < 50; part++) socket.write(frame(CONTINUATION, 0, 1, Buffer.alloc(1)));
  }),
];

async function sendBombs(client: FlowClient, encoding: string, bomb: Buffer): Promise<void> {
  for (let id = 1; !client.isClosed; id += 2) {
    client.send(open(id, PREDICT, [['grpc-encoding', encoding]]));
    await client.sendData(id, bomb);
    if (id % 2000 === 1999) await client.settle();
  }
}

async function sendUnfinished(client: FlowClient, path: string, count: number): Promise<void> {
  const message = frameMessage(zeros).subarray(0, -1);
  for (const id of ids(count)) client.send(open(id, path));
  await Promise.all(ids(count).map((id) => client.sendData(id, message, false)));
  await client.closed;
}

async function askUnread(client: FlowClient, window: number, count = 300): Promise<void> {
  client.send(frame(SETTINGS, 0, 0, initialWindow(window)), frame(WINDOW_UPDATE, 0, 0, uint32(LARGE_WINDOW)));
  for (const id of ids(count)) client.send(open(id, PREDICT));
  for (const id of ids(count)) await Promise.race([client.sendData(id, largeRequest), sleep(200)]);
  if (count === 300) await client.closed;
}

async function callOn(socket: Socket): Promise<void> {
  for (let id = 1; !socket.destroyed; id += 2) {
    socket.write(Buffer.concat([open(id, REFLECT), frame(DATA, 1, id, reflection)]));
    if (id % 200 === 1) await sleep(1);
  }
}
