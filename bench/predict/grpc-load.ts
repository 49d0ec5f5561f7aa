/**
 * A gRPC load generator over bare HTTP/2 frames, which sends one message or a few in turns. It costs a small part of a real client,
 * so that one core of load can keep one core of server busy; and it makes almost no garbage, since its own collections would count
 * as waiting.
 */
import { connect, type Socket } from 'node:net';
import { IdTable } from '../../src/memory/id-table.ts';

const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, windowUpdate: 8 } as const;
const END_STREAM = 0x1;
const ACK = 0x1;
const END_HEADERS = 0x4;
const HEAD_BYTES = 9;
const MAX_FRAME_BYTES = 16_384;
const LARGE_WINDOW = 0x3fff_ffff;
const READ_BYTES = 65_536;

export interface LoadConnection {
  /** Sends the message; `done` gets whether it was answered. */
  send(done: (isAnswered: boolean) => void): void;
  close(): void;
}

export interface PredictionTarget {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly message: Uint8Array;
  /** Messages that take turns with `message`; each has the same length. */
  readonly others?: readonly Uint8Array[];
}

export async function openConnection(target: PredictionTarget): Promise<LoadConnection> {
  let read = (_bytes: Buffer): void => {};
  const callback = (length: number, buffer: Uint8Array): boolean => {
    read((buffer as Buffer).subarray(0, length));
    return true;
  };
  const { host, port } = target;
  const socket = connect({ host, port, noDelay: true, onread: { buffer: Buffer.alloc(READ_BYTES), callback } });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  const connection = createConnection(socket, target);
  read = (bytes) => connection.read(bytes);
  return connection;
}

interface Stream {
  readonly id: number;
  readonly done: (isAnswered: boolean) => void;
  hasData: boolean;
}

function createConnection(socket: Socket, target: PredictionTarget): LoadConnection & { read(bytes: Buffer): void } {
  const streams = new IdTable<Stream>();
  const waiting: ((isAnswered: boolean) => void)[] = [];
  const calls = createCalls(target);
  let nextStream = 1;
  let sendWindow = 65_535;

  socket.write(
    Buffer.concat([
      Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
      frame(FRAME.settings, 0, 0, setting(4, LARGE_WINDOW)),
      frame(FRAME.windowUpdate, 0, 0, uint32(LARGE_WINDOW)),
    ]),
  );

  const sendNow = (done: (isAnswered: boolean) => void): void => {
    const id = nextStream;
    nextStream += 2;
    streams.add({ id, done, hasData: false });
    sendWindow -= calls.dataBytes;
    const bytes = calls.take(id);
    socket.write(bytes, () => calls.giveBack(bytes));
  };

  const settle = (id: number, isAnswered: boolean): void => {
    const stream = streams.get(id);
    if (stream === undefined) return;
    streams.delete(stream);
    stream.done(isAnswered && stream.hasData);
  };

  const addWindow = (bytes: number): void => {
    sendWindow += bytes;
    while (waiting.length > 0 && sendWindow >= calls.dataBytes) sendNow(waiting.shift()!);
  };

  const handle: HandleFrame = (bytes, start, end) => {
    const type = bytes[start + 3]!;
    const flags = bytes[start + 4]!;
    const id = bytes.readUInt32BE(start + 5);
    if (type === FRAME.data) {
      const stream = streams.get(id);
      if (stream !== undefined) stream.hasData = true;
    } else if (type === FRAME.headers && (flags & END_STREAM) !== 0) settle(id, true);
    else if (type === FRAME.reset) settle(id, false);
    else if (type === FRAME.settings && (flags & ACK) === 0) socket.write(frame(FRAME.settings, ACK, 0));
    else if (type === FRAME.ping && (flags & ACK) === 0)
      socket.write(frame(FRAME.ping, ACK, 0, bytes.subarray(start + HEAD_BYTES, end)));
    else if (type === FRAME.windowUpdate && id === 0) addWindow(bytes.readUInt32BE(start + HEAD_BYTES));
  };
  socket.on('close', () => {
    for (const { id } of streams.list()) settle(id, false);
  });

  return {
    read: createFrameReader(handle),
    send: (done) => {
      if (sendWindow >= calls.dataBytes) sendNow(done);
      else waiting.push(done);
    },
    close: () => socket.destroy(),
  };
}

/** Handles the frame from `start` to `end`. Positions, not an object, so that a frame makes no garbage. */
type HandleFrame = (bytes: Buffer, start: number, end: number) => void;

/** Splits the bytes of a socket into frames, and passes each frame on. */
function createFrameReader(handle: HandleFrame): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let position = 0;
    while (bytes.length - position >= HEAD_BYTES) {
      const end = position + HEAD_BYTES + bytes.readUIntBE(position, 3);
      if (bytes.length < end) break;
      handle(bytes, position, end);
      position = end;
    }
    // A copy: the next read overwrites these bytes.
    rest = Buffer.from(bytes.subarray(position));
  };
}

interface Calls {
  /** The bytes of the flow-control window that a call uses. */
  readonly dataBytes: number;
  /** Returns the bytes of a call on this stream. */
  take(streamId: number): Buffer;
  /** Called when the bytes were sent. */
  giveBack(bytes: Buffer): void;
}

function createCalls(target: PredictionTarget): Calls {
  const headers = encodeRequestHeaders(target);
  const [data = Buffer.alloc(0), ...others] = [target.message, ...(target.others ?? [])].map(frameMessage);
  if (others.some(({ length }) => length !== data.length)) throw new Error('Messages that take turns are equally long');
  const join = (block: Buffer, content: Buffer): Buffer =>
    Buffer.concat([frame(FRAME.headers, END_HEADERS, 0, block), ...splitData(content, 0)]);
  const again = join(headers.again, data);
  const free = others.map((content) => join(headers.again, content));
  return {
    dataBytes: data.length,
    take: (streamId) => {
      const bytes = streamId === 1 ? join(headers.first, data) : (free.shift() ?? Buffer.from(again));
      for (let at = 0; at < bytes.length; at += HEAD_BYTES + bytes.readUIntBE(at, 3))
        bytes.writeUInt32BE(streamId, at + 5);
      return bytes;
    },
    giveBack: (bytes) => {
      if (bytes.length === again.length) free.push(bytes);
    },
  };
}

/** The five-byte prefix of gRPC, then the message. */
function frameMessage(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function splitData(data: Buffer, id: number): Buffer[] {
  const frames: Buffer[] = [];
  for (let start = 0; start < data.length; start += MAX_FRAME_BYTES) {
    const part = data.subarray(start, start + MAX_FRAME_BYTES);
    frames.push(frame(FRAME.data, start + part.length === data.length ? END_STREAM : 0, id, part));
  }
  return frames;
}

function frame(type: number, flags: number, id: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, payload]);
}

function setting(id: number, value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id, 0);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value, 0);
  return bytes;
}

/** HPACK: the first request of a connection adds its headers to the dynamic table, and the others refer to them, as real clients do. */
function encodeRequestHeaders({ host, port, path }: PredictionTarget): { first: Buffer; again: Buffer } {
  const fields: [name: string, value: string][] = [
    [':path', path],
    [':authority', `${host}:${port}`],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
    ['user-agent', 'trivet-bench'],
    ['grpc-timeout', '1S'],
  ];
  const method = Buffer.from([0x83, 0x86]);
  const indexed = fields.map(([name, value]) => Buffer.concat([Buffer.from([0x40]), text(name), text(value)]));
  const pointers = fields.map((_, index) => 0x80 | (61 + fields.length - index));
  return { first: Buffer.concat([method, ...indexed]), again: Buffer.concat([method, Buffer.from(pointers)]) };
}

function text(value: string): Buffer {
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
}
