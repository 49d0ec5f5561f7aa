/** Waits until the first message of a TLS client is whole, and closes sockets that send something else. */
import type { Socket } from 'node:net';

const HANDSHAKE = 22;
const RECORD_HEAD_BYTES = 5;
const MESSAGE_HEAD_BYTES = 4;
/** First messages of real clients have less than 4 KiB. */
const MAX_BYTES = 16_384;
/** More than these become one: a part of a byte takes hundreds. */
const MAX_PARTS = 64;

/** Calls back with the length of the first message of a TLS client once it is whole. Its bytes stay to be read. What cannot be one closes the socket. */
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

/** ClientHello (RFC 8446, section 4.1.2), which may come in several records. Of all that comes, at most 16 KiB are looked at. */
export class ClientHello {
  #parts: Buffer[] = [];
  /** How many were looked at. */
  #count = 0;
  /** The bytes of the record under way. */
  #headBytes = 0;
  #contentBytesLeft = 0;
  #messageBytes = 0;
  /** Known once the first four bytes of the message have come. */
  #messageLength = 0;

  /** Of the message that is whole, its records included; more may have come with it. */
  get length(): number {
    return this.#count;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }

  /** `more` has to come before the message is whole. Not to be called after another answer. */
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

  /** Type, version, and the length in two bytes. */
  #readHead(byte: number): void {
    this.#headBytes += 1;
    if (this.#headBytes > 3) this.#contentBytesLeft = (this.#contentBytesLeft << 8) | byte;
  }

  /** The first byte of the message is its type, and the next three are its length. */
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
