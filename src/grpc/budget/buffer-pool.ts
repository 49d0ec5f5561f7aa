/** Reuses the buffers into which frames are written, and keeps no large one idle. */

const FIRST_BYTES = 16_384;
/** Larger buffers are not kept: one large answer must not hold its memory for good. */
const MAX_KEPT_BYTES = 262_144;
const MAX_KEPT = 64;

/**
 * Buffers for writes, shared by all connections. A new buffer for each write would become garbage outside the heap, and more
 * such garbage makes V8 collect the whole heap more often. A connection has at most one buffer, and only while it writes.
 */
export class BufferPool {
  /** The last used buffer is taken first: it is likely in the processor's cache, and of the size that is needed. */
  readonly #free: Buffer[] = [];

  take(bytes: number): Buffer {
    const free = this.#free.pop();
    if (free !== undefined && free.length >= bytes) return free;
    return Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, 2 ** Math.ceil(Math.log2(bytes))));
  }

  /** The caller must not use the buffer afterwards. */
  giveBack(buffer: Buffer): void {
    if (buffer.length <= MAX_KEPT_BYTES && this.#free.length < MAX_KEPT) this.#free.push(buffer);
  }
}
