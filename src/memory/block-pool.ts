/** The most bytes that idle blocks may have together. */
const MAX_IDLE_BYTES = 16_777_216;
const MIN_BYTES = 512;
/** Added to a power of two, so that a message of that size fits with its header. */
const HEAD_BYTES = 64;

/**
 * Blocks for the bytes of requests. A block is memory outside the heap: when 64 MB of such garbage have gathered, the whole
 * heap is marked, which stops the event loop for milliseconds. So blocks are used again.
 */
export class BlockPool {
  /** Idle blocks by their size. */
  readonly #idle = new Map<number, Buffer[]>();
  #idleBytes = 0;

  /** A block of at least this many bytes, whose content is undefined. */
  take(bytes: number): Buffer {
    const size = HEAD_BYTES + Math.max(MIN_BYTES, 2 ** Math.ceil(Math.log2(Math.max(1, bytes - HEAD_BYTES))));
    const block = this.#idle.get(size)?.pop();
    if (block === undefined) return Buffer.allocUnsafeSlow(size);
    this.#idleBytes -= size;
    return block;
  }

  /** The caller must not use the block afterwards. */
  giveBack(block: Buffer): void {
    const size = block.length;
    if (size < MIN_BYTES || this.#idleBytes + size > MAX_IDLE_BYTES) return;
    const blocks = this.#idle.get(size) ?? [];
    this.#idle.set(size, blocks);
    blocks.push(block);
    this.#idleBytes += size;
  }
}
