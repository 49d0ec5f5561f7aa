import { promisify } from 'node:util';
import { gunzip, inflate } from 'node:zlib';
import { StatusError } from '../status.ts';

/** One message as gRPC frames it: a flag, four bytes of length, the message. */
export interface FramedMessage {
  readonly isCompressed: boolean;
  readonly bytes: Buffer;
}

const HEAD_BYTES = 5;

/** Takes data as it comes and gives the messages in it. Throws a StatusError for what is no message or too large. */
export class MessageSplitter {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #length = 0;
  /** Bytes that the message at the front needs, head included; unknown before its head is there. */
  #needed = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(data: Buffer): readonly FramedMessage[] {
    this.#parts.push(data);
    this.#length += data.length;
    const messages: FramedMessage[] = [];
    for (let message = this.#take(); message !== undefined; message = this.#take()) messages.push(message);
    return messages;
  }

  /** Whether the data ends where a message ends. */
  get isEmpty(): boolean {
    return this.#length === 0;
  }

  #take(): FramedMessage | undefined {
    if (this.#length < HEAD_BYTES) return undefined;
    if (this.#needed === 0) this.#needed = HEAD_BYTES + readMessageLength(this.#join(), this.#maxBytes);
    if (this.#length < this.#needed) return undefined;
    const joined = this.#join();
    const message = joined.subarray(0, this.#needed);
    const rest = joined.subarray(this.#needed);
    this.#parts = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    this.#needed = 0;
    return { isCompressed: message[0] === 1, bytes: message.subarray(HEAD_BYTES) };
  }

  #join(): Buffer {
    if (this.#parts.length > 1) this.#parts = [Buffer.concat(this.#parts, this.#length)];
    return this.#parts[0]!;
  }
}

function readMessageLength(head: Buffer, maxBytes: number): number {
  if (head[0]! > 1) throw new StatusError('INTERNAL', 'Cannot read the message: its flag is unknown');
  const length = head.readUInt32BE(1);
  if (length > maxBytes)
    throw new StatusError(
      'RESOURCE_EXHAUSTED',
      `Cannot read the message: it must be at most ${maxBytes} bytes, got ${length}`,
    );
  return length;
}

/** The only message of a unary call that came in one piece, which most do; undefined when it is not that simple. */
export function readWholeMessage(body: Buffer, maxBytes: number): Buffer | undefined {
  if (body.length < HEAD_BYTES || body[0] !== 0) return undefined;
  const length = body.readUInt32BE(1);
  return length <= maxBytes && body.length === HEAD_BYTES + length ? body.subarray(HEAD_BYTES) : undefined;
}

type Decompress = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const DECOMPRESS: ReadonlyMap<string, Decompress> = new Map([
  ['gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
]);

/** Encodings that clients may use, as `grpc-accept-encoding` names them. */
export const ACCEPTED_ENCODINGS = 'identity,gzip,deflate';

export async function decompress({ bytes }: FramedMessage, encoding: string, maxBytes: number): Promise<Buffer> {
  // https://github.com/grpc/grpc/blob/master/doc/compression.md: the flag and the header contradict each other.
  if (encoding === 'identity')
    throw new StatusError(
      'INTERNAL',
      'Cannot read the message: it is flagged as compressed, but there is no grpc-encoding',
    );
  const decode = DECOMPRESS.get(encoding);
  if (decode === undefined)
    throw new StatusError(
      'UNIMPLEMENTED',
      `Cannot read the message: grpc-encoding must be one of ${ACCEPTED_ENCODINGS}, got "${encoding}"`,
    );
  try {
    return await decode(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
      throw new StatusError('RESOURCE_EXHAUSTED', `Cannot read the message: it must be at most ${maxBytes} bytes`);
    throw new StatusError('INTERNAL', 'Cannot read the message: it is not compressed as its encoding says');
  }
}
