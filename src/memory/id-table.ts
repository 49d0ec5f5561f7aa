/** Stores the calls or streams of a connection by id in a hash table that puts no garbage into the old generation of the heap. */

const FIRST_SLOTS = 16;
/** A table with more slots than this shrinks when few of them are used: an iteration visits all slots. */
const MAX_FREE_SLOTS = 256;
/** The least share of the slots of such a table that entries use. A table that grows fills a quarter of them, so it does not shrink at once. */
const MIN_USED_SHARE = 1 / 8;

export interface WithId {
  readonly id: number;
}

/**
 * Entries by their id, for a table that changes with each call. A `Map` does not suit this: when it grows, shrinks or is
 * cleared, V8 links its old memory to the new, for running iterators. Once one link of that chain is in the old
 * generation, all later links and their contents stay in memory until the whole heap is collected, which then happens more often.
 *
 * Open addressing with linear probing. The ids of one connection follow each other, so nearly every entry is in the slot of
 * its id; at worst a search visits all entries.
 */
export class IdTable<T extends WithId> {
  #slots = createSlots<T>(FIRST_SLOTS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): T | undefined {
    return this.#slots[this.#findSlot(id)];
  }

  /** The id must not be in the table yet. */
  add(entry: T): void {
    if (2 * (this.#size + 1) > this.#slots.length) this.#resize(2 * this.#slots.length);
    this.#slots[this.#findSlot(entry.id)] = entry;
    this.#size += 1;
  }

  /** Returns false when the entry is not in the table. */
  delete(entry: T): boolean {
    const slot = this.#findSlot(entry.id);
    if (this.#slots[slot] !== entry) return false;
    this.#size -= 1;
    this.#closeGap(slot);
    const { length } = this.#slots;
    if (length > MAX_FREE_SLOTS && this.#size < MIN_USED_SHARE * length) this.#resize(length / 2);
    return true;
  }

  /** Visits all entries in no order, without the garbage that a generator would leave for each. The table must not change meanwhile. */
  visit(see: (entry: T) => void): void {
    for (let slot = 0; slot < this.#slots.length; slot++) {
      const entry = this.#slots[slot];
      if (entry !== undefined) see(entry);
    }
  }

  /** Whether all entries pass. Stops at the first that does not. */
  every(passes: (entry: T) => boolean): boolean {
    for (let slot = 0; slot < this.#slots.length; slot++) {
      const entry = this.#slots[slot];
      if (entry !== undefined && !passes(entry)) return false;
    }
    return true;
  }

  /** A copy, ordered by id. */
  list(): T[] {
    const entries: T[] = [];
    this.visit((entry) => entries.push(entry));
    return entries.sort((left, right) => left.id - right.id);
  }

  /** The slot of the id, or the free slot where it would be added. */
  #findSlot(id: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = homeOf(id, mask);
    for (let entry = slots[slot]; entry !== undefined && entry.id !== id; entry = slots[slot]) slot = (slot + 1) & mask;
    return slot;
  }

  /** Moves later entries into the gap at the slot: a search would end at the gap before it finds them. */
  #closeGap(slot: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let gap = slot;
    let next = (slot + 1) & mask;
    for (let entry = slots[next]; entry !== undefined; entry = slots[next]) {
      const isPastGap = ((next - homeOf(entry.id, mask)) & mask) >= ((next - gap) & mask);
      if (isPastGap) {
        slots[gap] = entry;
        gap = next;
      }
      next = (next + 1) & mask;
    }
    slots[gap] = undefined;
  }

  #resize(slots: number): void {
    const entries = this.list();
    this.#slots = createSlots(slots);
    for (const entry of entries) this.#slots[this.#findSlot(entry.id)] = entry;
  }
}

function createSlots<T>(count: number): (T | undefined)[] {
  return Array.from({ length: count }, () => undefined);
}

/** Ids of clients are odd. */
function homeOf(id: number, mask: number): number {
  return (id >>> 1) & mask;
}
