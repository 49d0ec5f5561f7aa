/** Builds HTTP/2 bytes by hand: those of a correct client, and invalid ones. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { encodeHeaderBlock } from '../../../src/grpc/hpack/hpack-encoder.ts';
import { ECHO_PATH } from './grpc-server.ts';

export interface RawFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
export const [DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION] = Array.from(
  { length: 10 },
  (_, type) => type,
) as [number, number, number, number, number, number, number, number, number, number];

export function frame(type: number, flags: number, streamId: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

export function readFrames(bytes: Buffer): RawFrame[] {
  const frames: RawFrame[] = [];
  for (let position = 0; position + 9 <= bytes.length; ) {
    const end = position + 9 + bytes.readUIntBE(position, 3);
    const streamId = bytes.readUInt32BE(position + 5);
    const payload = bytes.subarray(position + 9, end);
    frames.push({ type: bytes[position + 3]!, flags: bytes[position + 4]!, streamId, payload });
    position = end;
  }
  return frames;
}

/** A client begins a connection with these bytes. */
export const BEGINNING = [PREFACE, frame(SETTINGS, 0, 0)];

/** A message as gRPC puts it into a stream. */
export function frameMessage(message: Uint8Array, flag = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The header block of a call. */
export function block(path = ECHO_PATH): Buffer {
  return encodeHeaderBlock([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    ['content-type', 'application/grpc'],
  ]);
}

/** Sends the bytes and a ping, and reads until the server closes the connection or answers the ping. */
export async function talk(port: number, ...parts: (Buffer | string)[]): Promise<RawFrame[]> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return talkOver(socket, ...parts);
}

/** Does the same over a connected socket. */
export async function talkOver(socket: Socket, ...parts: (Buffer | string)[]): Promise<RawFrame[]> {
  const chunks: Buffer[] = [];
  const isDone = (): boolean =>
    readFrames(Buffer.concat(chunks)).some(
      ({ type, flags, payload }) => type === PING && flags === 1 && String(payload) === 'the last',
    );
  const done = new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (isDone()) resolve();
    });
    socket.on('close', () => resolve());
    socket.on('error', () => resolve());
  });
  for (const part of parts) socket.write(part);
  socket.write(frame(PING, 0, 0, Buffer.from('the last')));
  await done;
  socket.destroy();
  return readFrames(Buffer.concat(chunks));
}
