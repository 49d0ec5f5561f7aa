/**
 * Keeps pages of memory for bodies that arrive, and uses them again. They are shared memory, though no other thread gets any, because
 * V8 does not count it. Of counted memory 64 MiB, dead or alive, make V8 mark the whole heap, which stops the event loop for
 * milliseconds. A page that was dropped would stay until a collection, and nothing would bring one about: so none is.
 */

export const PAGE_BYTES = 32_768;
/** A buffer for each page would have its own overhead. */
const PAGES_AT_ONCE = 32;

export class PagePool {
  readonly #idle: Uint8Array[] = [];

  /** Its content is undefined. */
  take(): Uint8Array {
    if (this.#idle.length === 0) this.#reserve();
    return this.#idle.pop()!;
  }

  /** The caller must not use the page afterwards. */
  giveBack(page: Uint8Array): void {
    this.#idle.push(page);
  }

  #reserve(): void {
    const memory = new SharedArrayBuffer(PAGES_AT_ONCE * PAGE_BYTES);
    for (let page = 0; page < PAGES_AT_ONCE; page++)
      this.#idle.push(new Uint8Array(memory, page * PAGE_BYTES, PAGE_BYTES));
  }
}

/** The bytes of one body, copied into pages as they come. */
export class PagedBytes {
  readonly #pool: PagePool;
  #pages: Uint8Array[] = [];
  #length = 0;

  constructor(pool: PagePool) {
    this.#pool = pool;
  }

  /** The memory of its pages. */
  get heldBytes(): number {
    return PAGE_BYTES * this.#pages.length;
  }

  push(bytes: Uint8Array): void {
    for (let start = 0; start < bytes.length; ) {
      const position = this.#length % PAGE_BYTES;
      if (position === 0) this.#pages.push(this.#pool.take());
      const part = bytes.subarray(start, start + PAGE_BYTES - position);
      this.#pages.at(-1)!.set(part, position);
      this.#length += part.length;
      start += part.length;
    }
  }

  /** All bytes, in memory of their own. */
  take(): Buffer {
    const whole = Buffer.allocUnsafeSlow(this.#length);
    for (const [index, page] of this.#pages.entries()) {
      const start = index * PAGE_BYTES;
      whole.set(page.subarray(0, this.#length - start), start);
    }
    this.clear();
    return whole;
  }

  /** Drops them. */
  clear(): void {
    for (const page of this.#pages) this.#pool.giveBack(page);
    this.#pages = [];
    this.#length = 0;
  }
}
