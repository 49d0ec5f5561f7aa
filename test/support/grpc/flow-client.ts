/** A handwritten HTTP/2 client that respects the server's flow-control windows, and reads only on request. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import {
  BEGINNING,
  DATA,
  frame,
  GOAWAY,
  HEADERS,
  PING,
  type RawFrame,
  SETTINGS,
  WINDOW_UPDATE,
} from './http2-frames.ts';

const FIRST_WINDOW = 65_535;
const MAX_FRAME_BYTES = 16_384;

export class FlowClient {
  readonly socket: Socket;
  /** The frames that arrived, without WINDOW_UPDATE. */
  readonly frames: RawFrame[] = [];
  readonly closed: Promise<void>;
  #rest: Buffer = Buffer.alloc(0);
  #connectionWindow = FIRST_WINDOW;
  #streamWindow = FIRST_WINDOW;
  readonly #windows = new Map<number, number>();
  readonly #wake: (() => void)[] = [];

  private constructor(socket: Socket) {
    this.socket = socket;
    // `once` would reject when the server resets the connection.
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => this.#wakeAll());
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    for (const part of BEGINNING) socket.write(part);
  }

  /** Resolves once the settings of the server have arrived. `localAddress` is one of 127.0.0.0/8. */
  static async connect(port: number, localAddress = '127.0.0.1'): Promise<FlowClient> {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    await once(socket, 'connect');
    const client = new FlowClient(socket);
    await client.until(() => client.frames.some(({ type }) => type === SETTINGS));
    return client;
  }

  /** Resolves once the server has read the parts. */
  static async connectWith(port: number, localAddress: string, ...parts: readonly Uint8Array[]): Promise<FlowClient> {
    const client = await FlowClient.connect(port, localAddress);
    client.send(...parts);
    await client.settle();
    return client;
  }

  get isClosed(): boolean {
    return this.socket.closed;
  }

  /** Bytes that the server lets us send on the connection. */
  get connectionWindow(): number {
    return this.#connectionWindow;
  }

  windowOf(streamId: number): number {
    return this.#windows.get(streamId) ?? this.#streamWindow;
  }

  /** The error code that the connection ended with. */
  get goAwayCode(): number | undefined {
    return this.frames.find(({ type }) => type === GOAWAY)?.payload.readUInt32BE(4);
  }

  send(...parts: Uint8Array[]): void {
    this.socket.write(Buffer.concat(parts));
  }

  /** Sends the bytes that the windows allow now, and returns the rest. */
  sendAllowed(streamId: number, bytes: Buffer, isLast = true): Buffer {
    let rest = bytes;
    for (;;) {
      const length = Math.min(rest.length, MAX_FRAME_BYTES, this.#connectionWindow, this.windowOf(streamId));
      if (length <= 0) return rest;
      this.#connectionWindow -= length;
      this.#windows.set(streamId, this.windowOf(streamId) - length);
      this.send(frame(DATA, isLast && length === rest.length ? 1 : 0, streamId, rest.subarray(0, length)));
      rest = rest.subarray(length);
    }
  }

  async sendData(streamId: number, bytes: Buffer, isLast = true): Promise<void> {
    let rest = this.sendAllowed(streamId, bytes, isLast);
    while (rest.length > 0 && !this.isClosed) {
      await this.#nextRead();
      rest = this.sendAllowed(streamId, rest, isLast);
    }
  }

  /** Resolves when the condition holds, or the connection is closed. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds() && !this.isClosed) await this.#nextRead();
  }

  /** Resolves when the server has read everything that was sent, and has sent its replies. */
  async settle(): Promise<void> {
    const text = Buffer.from(String(this.frames.length).padStart(8));
    this.send(frame(PING, 0, 0, text));
    await this.until(() => this.frames.some(({ type, payload }) => type === PING && payload.equals(text)));
  }

  /** The frame that ends a stream. */
  endOf(streamId: number): RawFrame | undefined {
    return this.frames.find(
      ({ type, flags, streamId: id }) => id === streamId && ((type === HEADERS && (flags & 1) === 1) || type === 3),
    );
  }

  async untilEnded(...streamIds: number[]): Promise<void> {
    await this.until(() => streamIds.every((streamId) => this.endOf(streamId) !== undefined));
  }

  #read(chunk: Buffer): void {
    const bytes = Buffer.concat([this.#rest, chunk]);
    let position = 0;
    while (position + 9 <= bytes.length) {
      const end = position + 9 + bytes.readUIntBE(position, 3);
      if (end > bytes.length) break;
      const payload = Buffer.from(bytes.subarray(position + 9, end));
      const streamId = bytes.readUInt32BE(position + 5);
      this.#handle({ type: bytes[position + 3]!, flags: bytes[position + 4]!, streamId, payload });
      position = end;
    }
    this.#rest = bytes.subarray(position);
    this.#wakeAll();
  }

  #handle(received: RawFrame): void {
    const { type, flags, streamId, payload } = received;
    if (type === WINDOW_UPDATE && streamId === 0) this.#connectionWindow += payload.readUInt32BE(0);
    else if (type === WINDOW_UPDATE) this.#windows.set(streamId, this.windowOf(streamId) + payload.readUInt32BE(0));
    else this.frames.push(received);
    if (type === SETTINGS && (flags & 1) === 0) this.#readSettings(payload);
  }

  #readSettings(payload: Buffer): void {
    for (let at = 0; at < payload.length; at += 6)
      if (payload.readUInt16BE(at) === 4) this.#streamWindow = payload.readUInt32BE(at + 2);
  }

  #nextRead(): Promise<void> {
    if (this.isClosed) return Promise.resolve();
    return new Promise((resolve) => this.#wake.push(resolve));
  }

  #wakeAll(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
