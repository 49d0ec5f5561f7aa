const FIRST_BYTES = 512;
const NOTHING = Buffer.alloc(0);

/**
 * Bytes that wait for the rest of their message, copied into a block of their own: a piece of a read would keep the
 * whole read alive, and each piece costs more than a hundred bytes besides those it carries.
 */
export class ByteQueue {
  #block: Buffer = NOTHING;
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  /** `needed` bytes are expected in all: the block need not be larger. */
  push(bytes: Uint8Array, needed = Number.POSITIVE_INFINITY): void {
    if (bytes.length === 0) return;
    if (this.#end + bytes.length > this.#block.length) this.#grow(bytes.length, needed);
    this.#block.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /** The first bytes; they stay in the queue. */
  peek(bytes: number): Buffer {
    return this.#block.subarray(this.#start, this.#start + bytes);
  }

  /** Removes the first bytes. They are never overwritten. */
  take(bytes: number): Buffer {
    const taken = this.peek(bytes);
    this.#start += bytes;
    if (this.#start === this.#end) this.clear();
    return taken;
  }

  clear(): void {
    this.#block = NOTHING;
    this.#start = 0;
    this.#end = 0;
  }

  /** Into a new block, since the old one may have been handed out in parts. */
  #grow(more: number, needed: number): void {
    const { length } = this;
    const doubled = Math.min(needed, 2 ** Math.ceil(Math.log2(length + more)));
    const block = Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, length + more, doubled));
    block.set(this.peek(length));
    this.#block = block;
    this.#start = 0;
    this.#end = length;
  }
}
