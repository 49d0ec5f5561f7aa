/** Reuses blocks of memory outside the heap, and limits the bytes of idle blocks. */
import { freeMemory } from './free-memory.ts';

/** The most bytes that idle blocks may have together. */
const MAX_IDLE_BYTES = 16_777_216;
const MIN_BYTES = 512;
/** Added to a power of two, so that a message of such a size fits with its header. */
const HEAD_BYTES = 64;

/** The size of the block that holds this many bytes. */
export function blockBytesFor(bytes: number): number {
  return HEAD_BYTES + Math.max(MIN_BYTES, 2 ** Math.ceil(Math.log2(Math.max(1, bytes - HEAD_BYTES))));
}

/**
 * Blocks for the bytes of requests. A block is memory outside the heap: at 64 MB of such garbage V8 marks the whole heap, which
 * stops the event loop for milliseconds. So blocks are reused.
 */
export class BlockPool {
  /** The idle blocks by their size. */
  readonly #shelves = new Map<number, Shelf>();
  #idleBytes = 0;
  #takes = 0;

  /** A block of at least this many bytes, whose content is undefined. */
  take(bytes: number): Buffer {
    const size = blockBytesFor(bytes);
    const shelf = this.#shelfOf(size);
    this.#takes += 1;
    shelf.lastTake = this.#takes;
    const block = shelf.idle.pop();
    if (block === undefined) return Buffer.allocUnsafeSlow(size);
    this.#idleBytes -= size;
    return block;
  }

  /** The caller must not use the block afterwards. */
  giveBack(block: Buffer): void {
    const size = block.length;
    if (size < MIN_BYTES) return;
    const shelf = this.#shelfOf(size);
    if (!this.#hasRoomFor(shelf)) {
      freeMemory(block);
      return;
    }
    shelf.idle.push(block);
    this.#idleBytes += size;
  }

  #hasRoomFor(shelf: Shelf): boolean {
    if (shelf.size > MAX_IDLE_BYTES) return false;
    while (this.#idleBytes + shelf.size > MAX_IDLE_BYTES) if (!this.#dropOlderThan(shelf)) return false;
    return true;
  }

  #shelfOf(size: number): Shelf {
    let shelf = this.#shelves.get(size);
    if (shelf === undefined) {
      shelf = { size, idle: [], lastTake: 0 };
      this.#shelves.set(size, shelf);
    }
    return shelf;
  }

  /** Drops a block of the size that was requested longest ago, as unused sizes would keep out others. False without such a block. */
  #dropOlderThan({ lastTake }: Shelf): boolean {
    let oldest: Shelf | undefined;
    for (const shelf of this.#shelves.values())
      if (shelf.idle.length > 0 && shelf.lastTake < (oldest?.lastTake ?? lastTake)) oldest = shelf;
    if (oldest === undefined) return false;
    freeMemory(oldest.idle.pop()!);
    this.#idleBytes -= oldest.size;
    return true;
  }
}

interface Shelf {
  readonly size: number;
  readonly idle: Buffer[];
  /** The number of the pool's last take of this size. */
  lastTake: number;
}
