/** Keeps data of an answer that found a window closed, and the trailers after it, until they are sent or given up. */
import type { BlockPool } from '../../memory/block-pool.ts';
import { ByteQueue } from '../../memory/byte-queue.ts';

/** Keeps data of an answer that found a window closed, and the trailers after it, until they are sent or given up. */
export class WaitingData {
  readonly bytes: ByteQueue;
  /** The end of the answer; undefined while the call may send more data. */
  trailers: Buffer | undefined;
  /** How many of the held bytes the connection has counted. */
  #countedBytes = 0;
  #onSent: (() => void) | undefined;

  constructor(blocks: BlockPool) {
    this.bytes = new ByteQueue(blocks);
  }

  /** Returns how many more bytes are held than at the last call. A block is held whole until its last byte is sent. */
  takeChange(): number {
    const change = this.bytes.heldBytes - this.#countedBytes;
    this.#countedBytes = this.bytes.heldBytes;
    return change;
  }

  clear(): void {
    this.bytes.clear();
    this.trailers = undefined;
  }

  whenSent(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onSent = resolve;
    return promise;
  }

  reportSent(): void {
    this.#onSent?.();
    this.#onSent = undefined;
  }
}
