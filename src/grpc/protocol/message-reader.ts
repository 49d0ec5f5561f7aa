/** Cuts the bytes of a request into gRPC messages: a flag, four bytes of length, the message. */
import type { BlockPool } from '../../memory/block-pool.ts';
import { ByteQueue } from '../../memory/byte-queue.ts';
import { StatusError } from './status.ts';

/** One message as gRPC frames it: a flag, four bytes of length, the message. */
export interface FramedMessage {
  readonly isCompressed: boolean;
  readonly bytes: Buffer;
}

export const MESSAGE_HEAD_BYTES = 5;

/** Takes data as it arrives and returns its messages one by one. */
export class MessageSplitter {
  readonly #maxBytes: number;
  readonly #queue: ByteQueue;
  /** The length of the first message with its prefix; 0 before the prefix has arrived. */
  #needed = 0;

  constructor(maxBytes: number, blocks: BlockPool) {
    this.#maxBytes = maxBytes;
    this.#queue = new ByteQueue(blocks);
  }

  /** How many bytes are not taken yet. */
  get length(): number {
    return this.#queue.length;
  }

  get needed(): number {
    return this.#needed;
  }

  push(data: Uint8Array): void {
    this.#queue.push(data);
  }

  /** Must be called when the message that was taken last is used no more. */
  recycle(): void {
    this.#queue.recycle();
  }

  clear(): void {
    this.#queue.clear();
    this.#needed = 0;
  }

  /** The length of the next message with its prefix; 0 while incomplete. Throws a StatusError for an invalid or too large message. */
  get nextBytes(): number {
    const queue = this.#queue;
    if (this.#needed === 0) {
      if (queue.length < MESSAGE_HEAD_BYTES) return 0;
      this.#needed = MESSAGE_HEAD_BYTES + readMessageLength(queue.peek(MESSAGE_HEAD_BYTES), this.#maxBytes);
    }
    return queue.length < this.#needed ? 0 : this.#needed;
  }

  get isNextCompressed(): boolean {
    return this.#queue.firstByte === 1;
  }

  /** Takes the next message if it is complete. Throws as `nextBytes` does. */
  take(): FramedMessage | undefined {
    const bytes = this.nextBytes;
    if (bytes === 0) return undefined;
    const message = this.#queue.take(bytes);
    this.#needed = 0;
    return { isCompressed: message[0] === 1, bytes: message.subarray(MESSAGE_HEAD_BYTES) };
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

/** Returns the message of a unary call that arrived in one piece, as most do; undefined in any other case. */
export function readWholeMessage(body: Buffer, maxBytes: number): Buffer | undefined {
  if (body.length < MESSAGE_HEAD_BYTES || body[0] !== 0) return undefined;
  const length = body.readUInt32BE(1);
  return length <= maxBytes && body.length === MESSAGE_HEAD_BYTES + length
    ? body.subarray(MESSAGE_HEAD_BYTES)
    : undefined;
}
