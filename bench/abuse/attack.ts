/** Builds attacks from connections that send raw bytes and reconnect when the server closes them. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeHeaderBlock } from '../../src/grpc/hpack/hpack-encoder.ts';
import { FlowClient } from '../../test/support/grpc/flow-client.ts';
import { BEGINNING, frame, HEADERS } from '../../test/support/grpc/http2-frames.ts';

export interface Target {
  readonly grpcPort: number;
  readonly httpPort: number;
}

/** An attack runs until its process is killed. */
export interface Attack {
  readonly name: string;
  /** The highest allowed ratio of the client's p99 during the attack to that before it; 3 by default. */
  readonly maxRatio?: number;
  run(target: Target): Promise<void>;
}

export const PREDICT = '/prediction.v1.PredictionService/Predict';
export const REPORT = '/observation.v1.ObservationService/Report';
export const WATCH = '/grpc.health.v1.Health/Watch';
export const REFLECT = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';

const BATCH_BYTES = 65_536;
const STREAM_IDS = 0x7fff_0000;

export function head(path: string, more: readonly (readonly [string, string])[] = []): Buffer {
  return encodeHeaderBlock([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    ['te', 'trailers'],
    ['content-type', 'application/grpc'],
    ...more,
  ]);
}

export function open(streamId: number, path: string, more?: readonly (readonly [string, string])[]): Buffer {
  return frame(HEADERS, 4, streamId, head(path, more));
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** The initial window size, as one entry of a SETTINGS frame. */
export function initialWindow(bytes: number): Buffer {
  return Buffer.concat([Buffer.of(0, 4), uint32(bytes)]);
}

/** Repeats the bytes as often as they fit into a write. */
export function repeat(bytes: Buffer): Buffer {
  return Buffer.concat(Array.from({ length: Math.max(1, Math.floor(BATCH_BYTES / bytes.length)) }, () => bytes));
}

/** Returns as many calls as fit into a write, from this stream id on. */
function batch(firstId: number, call: (streamId: number) => Buffer): { bytes: Buffer; nextId: number } {
  const calls: Buffer[] = [];
  let id = firstId;
  for (let length = 0; length < BATCH_BYTES; id += 2) {
    const bytes = call(id);
    calls.push(bytes);
    length += bytes.length;
  }
  return { bytes: Buffer.concat(calls), nextId: id };
}

export async function dial(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  socket.on('error', () => {});
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  return socket;
}

/** Resolves with false when the connection is closed. */
export async function send(socket: Socket, bytes: Buffer): Promise<boolean> {
  if (socket.destroyed || !socket.writable) return false;
  if (socket.write(bytes)) await sleep(0);
  else await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
  return !socket.destroyed && socket.writable;
}

interface Flood {
  /** Sent once, after the preface. */
  readonly before?: Buffer;
  readonly repeated: Buffer;
  readonly isUnread?: boolean;
}

export function flood(name: string, { before, repeated, isUnread }: Flood): Attack {
  const bytes = repeat(repeated);
  return {
    name,
    run: (target) =>
      forever(async () => {
        const socket = await openRaw(target.grpcPort, isUnread ?? false);
        if (before !== undefined) await send(socket, before);
        while (await send(socket, bytes));
      }),
  };
}

/** Sends the same frames on a new stream each time. */
export function callFlood(name: string, call: (streamId: number) => Buffer, before?: Buffer): Attack {
  return {
    name,
    run: (target) =>
      forever(async () => {
        const socket = await openRaw(target.grpcPort, false);
        if (before !== undefined) await send(socket, before);
        let next = batch(1, call);
        while (next.nextId < STREAM_IDS && (await send(socket, next.bytes))) next = batch(next.nextId, call);
        socket.destroy();
      }),
  };
}

async function openRaw(port: number, isUnread: boolean): Promise<Socket> {
  const socket = await dial(port);
  if (isUnread) socket.pause();
  else socket.resume();
  for (const part of BEGINNING) socket.write(part);
  return socket;
}

/** Clients that respect the flow-control windows. */
export function flowAttack(name: string, connections: number, attack: (client: FlowClient) => Promise<void>): Attack {
  return {
    name,
    run: async (target) => {
      await Promise.all(
        Array.from({ length: connections }, () =>
          forever(async () => attack(await FlowClient.connect(target.grpcPort))),
        ),
      );
    },
  };
}

/** Repeats the work as soon as it has ended, but without a busy loop. */
export async function forever(run: () => Promise<void>): Promise<void> {
  for (;;) {
    await run();
    await sleep(5);
  }
}

/** Opens many connections that stay open. */
export function crowd(name: string, count: number, hold: (socket: Socket) => void, port = grpcPortOf): Attack {
  return {
    name,
    run: async (target) => {
      for (let opened = 0; opened < count; opened++) {
        const socket = await dial(port(target));
        socket.resume();
        hold(socket);
      }
      await sleep(0x7fff_ffff);
    },
  };
}

export function grpcPortOf({ grpcPort }: Target): number {
  return grpcPort;
}

export function httpPortOf({ httpPort }: Target): number {
  return httpPort;
}
