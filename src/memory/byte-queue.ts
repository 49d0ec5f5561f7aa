/** Collects bytes that wait for the rest of their message in a separate block, so that they keep no whole read alive. */
import type { BlockPool } from './block-pool.ts';

const NOTHING = Buffer.alloc(0);

/**
 * Bytes that wait for the rest of their message, copied into a separate block: a slice of a read would keep the whole read alive,
 * and each slice has an overhead of more than a hundred bytes.
 */
export class ByteQueue {
  readonly #pool: BlockPool;
  #block: Buffer = NOTHING;
  #start = 0;
  #end = 0;
  /** Bytes of the block are in use until `recycle` is called. */
  #isHandedOut = false;
  /** The block of the bytes that are in use, when the queue has moved to another block since. */
  #takenBlock: Buffer | undefined;

  constructor(pool: BlockPool) {
    this.#pool = pool;
  }

  get length(): number {
    return this.#end - this.#start;
  }

  /** The memory that the queue holds. */
  get heldBytes(): number {
    return this.#block.length;
  }

  push(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (this.#end + bytes.length > this.#block.length) this.#grow(bytes.length);
    this.#block.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /** Undefined when the queue is empty. */
  get firstByte(): number | undefined {
    return this.length === 0 ? undefined : this.#block[this.#start];
  }

  /** The first bytes; they stay in the queue. */
  peek(bytes: number): Buffer {
    return this.#block.subarray(this.#start, this.#start + bytes);
  }

  /** Removes the first bytes. They are not overwritten before `recycle`. */
  take(bytes: number): Buffer {
    const taken = this.peek(bytes);
    const isFirst = !this.#isHandedOut;
    this.#isHandedOut = true;
    this.#start += bytes;
    this.#takenBlock = undefined;
    if (this.#start < this.#end) return taken;
    if (isFirst) this.#takenBlock = this.#block;
    this.#forgetBlock();
    return taken;
  }

  /** Removes the first bytes, which are not used any more. */
  drop(bytes: number): void {
    this.#start += bytes;
    if (this.#start === this.#end) this.clear();
  }

  /** Drops the bytes that were not taken. */
  clear(): void {
    if (!this.#isHandedOut) this.#pool.giveBack(this.#block);
    this.#forgetBlock();
  }

  /** Must be called when the taken bytes are no longer used. */
  recycle(): void {
    if (this.#takenBlock !== undefined) this.#pool.giveBack(this.#takenBlock);
    this.#takenBlock = undefined;
    this.#isHandedOut = false;
  }

  #forgetBlock(): void {
    this.#block = NOTHING;
    this.#start = 0;
    this.#end = 0;
    this.#isHandedOut = false;
  }

  /** Makes room: moves the bytes to the start of the block if no one uses the bytes there, otherwise into a new block. */
  #grow(more: number): void {
    const { length } = this;
    if (!this.#isHandedOut && length + more <= this.#block.length) {
      this.#block.copyWithin(0, this.#start, this.#end);
      this.#start = 0;
      this.#end = length;
      return;
    }
    const block = this.#pool.take(length + more);
    block.set(this.peek(length));
    if (this.#isHandedOut) this.#takenBlock = this.#block;
    this.clear();
    this.#block = block;
    this.#end = length;
  }
}
