/** Implements a doubly linked queue from which any entry is removed in constant time. */

/** The fields that a queue sets in its entries. An entry is in one queue at a time. */
export interface Linked<T> {
  previous: T | undefined;
  next: T | undefined;
}

/**
 * Entries in the order in which they came. Any entry can be removed without a search. A `Set` keeps removed entries in memory
 * (see `id-table.ts`); a removed entry of this queue points to no other entry, and no entry points to it.
 */
export class LinkedQueue<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;

  get first(): T | undefined {
    return this.#first;
  }

  has(entry: T): boolean {
    return entry === this.#first || (entry.previous !== undefined && entry.previous.next === entry);
  }

  /** Adds the entry as the last one, unless it is in the queue already. */
  add(entry: T): void {
    if (this.has(entry)) return;
    entry.previous = this.#last;
    if (this.#last === undefined) this.#first = entry;
    else this.#last.next = entry;
    this.#last = entry;
  }

  /** Returns false when the entry is not in the queue. */
  delete(entry: T): boolean {
    if (!this.has(entry)) return false;
    const { previous, next } = entry;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    entry.previous = undefined;
    entry.next = undefined;
    return true;
  }

  /** A copy, in their order. */
  list(): T[] {
    return [...this];
  }

  /** The queue must not change during the iteration. */
  *[Symbol.iterator](): Generator<T> {
    for (let entry = this.#first; entry !== undefined; entry = entry.next) yield entry;
  }
}
