const FIRST_BYTES = 16_384;
/** Who once sent megabytes need not keep as many. */
const MAX_KEPT_BYTES = 262_144;
const MAX_KEPT = 64;

/**
 * Buffers for what goes out, shared by all connections. New ones for each write would be memory outside the heap that is
 * dead at once, and the more of it there is, the sooner the whole heap is collected. No connection has two, and a connection with
 * nothing to say has none.
 */
export class WriteMemory {
  /** What was used last is taken first: it is likely in the cache, and of the size that is needed. */
  readonly #free: Buffer[] = [];

  take(bytes: number): Buffer {
    const free = this.#free.pop();
    if (free !== undefined && free.length >= bytes) return free;
    return Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, 2 ** Math.ceil(Math.log2(bytes))));
  }

  /** From now on the buffer is another's. */
  giveBack(buffer: Buffer): void {
    if (buffer.length <= MAX_KEPT_BYTES && this.#free.length < MAX_KEPT) this.#free.push(buffer);
  }
}
