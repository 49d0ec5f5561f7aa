/**
 * Keeps pages of memory for arriving bodies, and reuses them. They are SharedArrayBuffers, though no other thread gets any, because
 * V8 does not count those: 64 MiB of counted memory, dead or alive, make V8 mark the whole heap, which stops the event loop for
 * milliseconds. For the same reason dropped pages would trigger no collection, and would pile up until another cause brings one.
 * So they are reused, and together they are no larger than the budget of bodies.
 */
import { freeMemory } from '../../memory/free-memory.ts';

export const PAGE_BYTES = 32_768;
/** Pages are created this many at a time, in one buffer: a buffer for each page would have its own overhead. */
const PAGES_AT_ONCE = 32;

export class PagePool {
  /** The shared pages take at most this much together. */
  readonly maxBytes: number;
  readonly #idle: Uint8Array[] = [];
  /** How many shared pages may still be created. */
  #unmade: number;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
    this.#unmade = Math.floor(maxBytes / PAGE_BYTES);
  }

  /** Returns a page with undefined content: ordinary memory when all shared pages are in use. */
  take(): Uint8Array {
    if (this.#idle.length === 0) this.#reserve();
    return this.#idle.pop() ?? Buffer.allocUnsafeSlow(PAGE_BYTES);
  }

  /** The caller must not use the page afterwards. */
  giveBack(page: Uint8Array): void {
    if (page.buffer instanceof SharedArrayBuffer) this.#idle.push(page);
    else freeMemory(page);
  }

  #reserve(): void {
    const pages = Math.min(PAGES_AT_ONCE, this.#unmade);
    this.#unmade -= pages;
    const memory = new SharedArrayBuffer(pages * PAGE_BYTES);
    for (let page = 0; page < pages; page++) this.#idle.push(new Uint8Array(memory, page * PAGE_BYTES, PAGE_BYTES));
  }
}

const NOTHING = Buffer.alloc(0);
const MIN_BLOCK_BYTES = 512;
/** A body takes no page until it has more bytes than this: otherwise slow bodies of one byte would use up the budget with a page each. */
const FIRST_BYTES = 4096;

/** The size of the block for this many bytes: a power of two, so that few bytes are copied again as a body grows. */
function blockBytesFor(bytes: number): number {
  return Math.max(MIN_BLOCK_BYTES, 2 ** Math.ceil(Math.log2(bytes)));
}

/**
 * The bytes of one body, copied as they arrive: the first into a small block of ordinary memory, more into pages. A body larger than
 * all pages together is in one large block, which is returned without a copy: a copy would take as much memory again.
 */
export class PagedBytes {
  readonly #pool: PagePool;
  /** Empty while the bytes are in pages. */
  #block: Buffer = NOTHING;
  #pages: Uint8Array[] = [];
  #length = 0;

  constructor(pool: PagePool) {
    this.#pool = pool;
  }

  /** The size of its block or pages in bytes. */
  get heldBytes(): number {
    return this.#block.length + PAGE_BYTES * this.#pages.length;
  }

  push(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    const length = this.#length + bytes.length;
    if (length <= FIRST_BYTES || length > this.#pool.maxBytes) {
      if (length > this.#block.length) this.#moveToBlock(blockBytesFor(length));
      this.#block.set(bytes, this.#length);
      this.#length = length;
    } else {
      if (this.#block.length > 0) this.#moveToPages();
      this.#addToPages(bytes);
    }
  }

  /** Returns all bytes, in memory that they share with no other body. */
  take(): Buffer {
    if (this.#pages.length > 0) this.#moveToBlock(this.#length);
    const whole = this.#block.subarray(0, this.#length);
    this.#block = NOTHING;
    this.#length = 0;
    return whole;
  }

  /** Drops the bytes. */
  clear(): void {
    for (const page of this.#pages) this.#pool.giveBack(page);
    this.#pages = [];
    freeMemory(this.#block);
    this.#block = NOTHING;
    this.#length = 0;
  }

  #addToPages(bytes: Uint8Array): void {
    for (let start = 0; start < bytes.length; ) {
      const position = this.#length % PAGE_BYTES;
      if (position === 0) this.#pages.push(this.#pool.take());
      const part = bytes.subarray(start, start + PAGE_BYTES - position);
      this.#pages.at(-1)!.set(part, position);
      this.#length += part.length;
      start += part.length;
    }
  }

  #moveToPages(): void {
    const [block, length] = [this.#block, this.#length];
    this.#block = NOTHING;
    this.#length = 0;
    this.#addToPages(block.subarray(0, length));
    freeMemory(block);
  }

  /** Copies from a smaller block or from pages, and gives each page back. */
  #moveToBlock(blockBytes: number): void {
    const block = Buffer.allocUnsafeSlow(blockBytes);
    block.set(this.#block.subarray(0, this.#length));
    freeMemory(this.#block);
    for (const [index, page] of this.#pages.entries()) {
      const start = index * PAGE_BYTES;
      block.set(page.subarray(0, this.#length - start), start);
      this.#pool.giveBack(page);
    }
    this.#pages = [];
    this.#block = block;
  }
}
