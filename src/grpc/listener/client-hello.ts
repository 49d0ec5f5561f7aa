import type { Socket } from 'node:net';

const HANDSHAKE = 22;
const RECORD_HEAD_BYTES = 5;
const MESSAGE_HEAD_BYTES = 4;
/** Those of real clients have less than 4 KiB. */
const MAX_BYTES = 16_384;

/** Calls back once the first message of a TLS client is whole, or it cannot be one. Its bytes stay to be read. */
export function awaitHello(socket: Socket, goOn: () => void): void {
  const hello = new ClientHello();
  const read = (): void => {
    const part = socket.read() as Buffer | null;
    if (part === null || !hello.add(part)) return;
    socket.off('readable', read);
    socket.unshift(hello.bytes);
    goOn();
  };
  socket.on('readable', read);
}

/** ClientHello (RFC 8446, section 4.1.2), which may come in several records. */
export class ClientHello {
  bytes: Buffer = Buffer.alloc(0);
  /** Where the next record begins. */
  #next = 0;
  #message: Buffer = Buffer.alloc(0);

  /** Returns whether nothing is to wait for. */
  add(part: Buffer): boolean {
    this.bytes = Buffer.concat([this.bytes, part]);
    while (this.#hasRecord) this.#readRecord();
    return this.#isOther || this.#isWhole || this.bytes.length >= MAX_BYTES;
  }

  get #isOther(): boolean {
    return this.bytes.length > this.#next && this.bytes[this.#next] !== HANDSHAKE;
  }

  get #hasRecord(): boolean {
    const length = this.bytes.length - this.#next;
    return length >= RECORD_HEAD_BYTES && !this.#isOther && length >= this.#recordBytes;
  }

  get #recordBytes(): number {
    return RECORD_HEAD_BYTES + this.bytes.readUInt16BE(this.#next + 3);
  }

  #readRecord(): void {
    const end = this.#next + this.#recordBytes;
    this.#message = Buffer.concat([this.#message, this.bytes.subarray(this.#next + RECORD_HEAD_BYTES, end)]);
    this.#next = end;
  }

  get #isWhole(): boolean {
    const message = this.#message;
    return message.length >= MESSAGE_HEAD_BYTES && message.length >= MESSAGE_HEAD_BYTES + message.readUIntBE(1, 3);
  }
}
