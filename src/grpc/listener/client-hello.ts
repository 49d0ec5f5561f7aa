/** Waits until the ClientHello, the first message of a TLS client, is complete, and closes sockets that send anything else. */
import type { Socket } from 'node:net';

const HANDSHAKE = 22;
const RECORD_HEAD_BYTES = 5;
const MESSAGE_HEAD_BYTES = 4;
/** The most bytes of a ClientHello: those of real clients have less than 4 KiB. */
const MAX_BYTES = 16_384;
/** More parts than this are joined: a part of one byte takes hundreds of bytes of memory. */
const MAX_PARTS = 64;

/** Calls back with the length of the ClientHello once it is complete. Its bytes stay readable. Any other bytes close the socket. */
export function awaitHello(socket: Socket, goOn: (length: number) => void): void {
  const hello = new ClientHello();
  const read = (): void => {
    const part = socket.read() as Buffer | null;
    const found = part === null ? 'more' : hello.add(part);
    if (found === 'more') return;
    socket.off('readable', read);
    if (found === 'refuse') {
      socket.destroy();
      return;
    }
    socket.unshift(hello.bytes);
    goOn(hello.length);
  };
  socket.on('readable', read);
}

/** A parser of the ClientHello (RFC 8446, section 4.1.2), which may span several records. It reads at most 16 KiB. */
export class ClientHello {
  #parts: Buffer[] = [];
  /** How many bytes were read. */
  #count = 0;
  /** The bytes left in the current record. */
  #headBytes = 0;
  #contentBytesLeft = 0;
  #messageBytes = 0;
  /** The length of the message; known once its first four bytes have arrived. */
  #messageLength = 0;

  /** The length of the complete message with its record headers; more bytes may have arrived with it. */
  get length(): number {
    return this.#count;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }

  /** Returns `more` while the message is incomplete. Must not be called after another result. */
  add(part: Buffer): 'whole' | 'more' | 'refuse' {
    this.#parts.push(part);
    if (this.#parts.length > MAX_PARTS) this.#parts = [this.bytes];
    const end = Math.min(part.length, MAX_BYTES - this.#count);
    for (let at = 0; at < end; at++) {
      const byte = part[at]!;
      if (this.#headBytes === 0 && byte !== HANDSHAKE) return 'refuse';
      this.#read(byte);
      this.#count += 1;
      if (this.#isWhole) return 'whole';
    }
    return this.#count < MAX_BYTES ? 'more' : 'refuse';
  }

  #read(byte: number): void {
    if (this.#headBytes < RECORD_HEAD_BYTES) this.#readHead(byte);
    else this.#readContent(byte);
    if (this.#headBytes === RECORD_HEAD_BYTES && this.#contentBytesLeft === 0) this.#headBytes = 0;
  }

  /** Reads a record header: type, version, and the length in two bytes. */
  #readHead(byte: number): void {
    this.#headBytes += 1;
    if (this.#headBytes > 3) this.#contentBytesLeft = (this.#contentBytesLeft << 8) | byte;
  }

  /** Reads the message header: one byte of type, three bytes of length. */
  #readContent(byte: number): void {
    this.#contentBytesLeft -= 1;
    this.#messageBytes += 1;
    if (this.#messageBytes > 1 && this.#messageBytes <= MESSAGE_HEAD_BYTES)
      this.#messageLength = (this.#messageLength << 8) | byte;
  }

  /** OpenSSL reads whole records. */
  get #isWhole(): boolean {
    if (this.#headBytes > 0 || this.#messageBytes < MESSAGE_HEAD_BYTES) return false;
    return this.#messageBytes >= MESSAGE_HEAD_BYTES + this.#messageLength;
  }
}
